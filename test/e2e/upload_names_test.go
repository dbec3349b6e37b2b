package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berth-dev/berth/test/session"
	"github.com/berth-dev/berth/test/uploadcases"
)

// uploadsAtATime is how many uploads of one name are under way.
const uploadsAtATime = 16

// itNamesUploads holds the table of names against a session that is there. It
// removes what was uploaded before.
func itNamesUploads(target func() session.Target) {
	// emptied removes all uploads.
	emptied := func(ctx context.Context) *session.Session {
		s := connect(ctx, target())
		run(ctx, s, "rm -rf /workspace/uploads")
		return s
	}

	It("gets a name that is safe to show, by the table", func(ctx context.Context) {
		s := emptied(ctx)
		for i, c := range uploadcases.Names {
			content := fmt.Sprint("content ", i)
			file := upload(ctx, target(), c.Raw, strings.NewReader(content))
			Expect(file.Name).To(Equal(c.Want), "%s: %q", c.Case, c.Raw)
			Expect(file.Path).To(Equal("/workspace/uploads/" + c.Want))
			Expect(run(ctx, s, "cat -- '"+strings.ReplaceAll(file.Path, "'", `'\''`)+"'; rm -r uploads")).To(Equal(content))
		}
	}, SpecTimeout(specTimeout))

	It("is refused where no file can have its name, and leaves nothing", func(ctx context.Context) {
		s := emptied(ctx)
		for _, raw := range uploadcases.Refused() {
			Expect(refusedUpload(ctx, target(), raw, strings.NewReader("x"))).To(Equal(http.StatusBadRequest), "%q", raw)
		}
		Expect(run(ctx, s, "ls -A uploads 2>/dev/null || true")).To(BeEmpty())
	}, SpecTimeout(specTimeout))

	It("overwrites nothing, but gets a number, by the table", func(ctx context.Context) {
		for _, c := range uploadcases.Collisions {
			s := emptied(ctx)
			var workers sync.WaitGroup
			next := make(chan int)
			for range min(uploadsAtATime, c.N-1) {
				workers.Go(func() {
					defer GinkgoRecover()
					for i := range next {
						upload(ctx, target(), c.Name, strings.NewReader(fmt.Sprint(i)))
					}
				})
			}
			for i := range c.N - 1 {
				next <- i
			}
			close(next)
			workers.Wait()
			file := upload(ctx, target(), c.Name, strings.NewReader("the last"))
			Expect(file.Name).To(Equal(c.Want), c.Case)
			Expect(run(ctx, s, "ls -A uploads | wc -l; cat uploads/* | wc -c; cat 'uploads/"+c.Want+"'")).
				To(Equal(fmt.Sprintf("%d\n%d\nthe last", c.N, digits(c.N-1)+len("the last"))), "%s: nothing is lost", c.Case)
			if c.N == uploadcases.LastTry {
				Expect(refusedUpload(ctx, target(), c.Name, bytes.NewReader(nil))).To(Equal(http.StatusConflict))
				Expect(run(ctx, s, "ls -A uploads | wc -l")).To(Equal(fmt.Sprintln(c.N)))
			}
		}
	}, SpecTimeout(specTimeout))
}

// digits is how long the numbers below n are, written one after the other.
func digits(n int) (sum int) {
	for i := range n {
		sum += len(fmt.Sprint(i))
	}
	return sum
}
