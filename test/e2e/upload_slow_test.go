package e2e

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berth-dev/berth/test/session"
)

const (
	// pieceTime is between two pieces of a slow upload: less than the 20 s that
	// each of them may take.
	pieceTime = 15 * time.Second
	// pieces of a slow upload take 45 s in all.
	pieces = 4
	// stallTime is for a stalled upload to be refused, which takes 20 s.
	stallTime = 25 * time.Second
	piece     = "a piece of the file\n"
)

// uploadEnd is how an upload ended, and how long that took.
type uploadEnd struct {
	file session.File
	err  error
	took time.Duration
}

// startUpload uploads in the background.
func startUpload(ctx context.Context, target session.Target, name string, content io.Reader) <-chan uploadEnd {
	ended := make(chan uploadEnd, 1)
	started := time.Now()
	go func() {
		file, err := session.Upload(ctx, target, name, content)
		ended <- uploadEnd{file, err, time.Since(started)}
	}()
	return ended
}

// slowly gives so many pieces, with pieceTime between two.
func slowly(ctx context.Context, pieces int) io.Reader {
	reader, writer := io.Pipe()
	go func() {
		for i := range pieces {
			if i > 0 {
				select {
				case <-time.After(pieceTime):
				case <-ctx.Done():
				}
			}
			if _, err := io.WriteString(writer, piece); err != nil {
				return // the upload has ended
			}
		}
		writer.Close()
	}()
	return reader
}

// stalling gives one piece and then nothing.
func stalling() io.Reader {
	reader, writer := io.Pipe()
	go func() {
		_, _ = io.WriteString(writer, piece) // fails when the upload has ended
	}()
	return reader
}

// They take their time, so others go on meanwhile.
var _ = Describe("An upload, while one takes 45 s and another one stalls,", Ordered, func() {
	var (
		t             *tenant
		slow, stalled <-chan uploadEnd
	)
	BeforeAll(func(ctx context.Context) {
		t = newTenant(ctx)
		whole, cancel := context.WithCancel(context.WithoutCancel(ctx))
		DeferCleanup(cancel)
		slow = startUpload(whole, t.target("patient"), "slow", slowly(whole, pieces))
		stalled = startUpload(whole, t.target("patient"), "stalled", stalling())
	}, NodeTimeout(specTimeout))

	itNamesUploads(func() session.Target { return t.target("names") })
	itUploadsMuch(func() *tenant { return t })

	It("is refused if nothing comes for 20 s, and leaves nothing", func(ctx context.Context) {
		var end uploadEnd
		Eventually(stalled).WithContext(ctx).WithTimeout(specTimeout).Should(Receive(&end))
		var refusal *session.Refusal
		Expect(errors.As(end.err, &refusal)).To(BeTrue(), "%v", end.err)
		Expect(refusal.Status).To(Equal(http.StatusRequestTimeout))
		Expect(end.took).To(And(BeNumerically(">", 20*time.Second), BeNumerically("<", stallTime)))
		Expect(run(ctx, connect(ctx, t.target("patient")), "ls -A uploads")).NotTo(ContainSubstring("stalled"))
	}, SpecTimeout(specTimeout))

	It("succeeds however long it takes, if each piece comes within 20 s, and is hidden until then", func(ctx context.Context) {
		s := connect(ctx, t.target("patient"))
		var end uploadEnd
		select {
		case end = <-slow:
		default:
			Expect(run(ctx, s, "ls -A uploads")).To(MatchRegexp(`^\.slow\.upload-[0-9a-f]{16}\n$`))
			Eventually(slow).WithContext(ctx).WithTimeout(specTimeout).Should(Receive(&end))
		}
		Expect(end.err).NotTo(HaveOccurred())
		Expect(end.took).To(BeNumerically(">", (pieces-1)*pieceTime))
		Expect(run(ctx, s, "ls -A uploads; cat uploads/slow")).To(Equal("slow\n" + strings.Repeat(piece, pieces)))
	}, SpecTimeout(specTimeout))
})
