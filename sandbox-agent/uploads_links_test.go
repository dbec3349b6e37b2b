package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/berth-dev/berth/test/uploadcases"
)

// refuseLinks makes the test binary, when it acts as an agent, have the kernel
// refuse it and all that it starts hard links, as gVisor or a file system without
// them does.
const refuseLinks = "BERTH_TEST_REFUSE_LINKS"

// withoutLinks starts an agent that the kernel refuses hard links.
func withoutLinks(t *testing.T) *agent {
	t.Helper()
	a := startAgent(t, agentOptions{within: []string{"export " + refuseLinks + "=1"}})
	if got := a.run(t, ": > a; ln a b"); got.ExitCode == 0 || !strings.Contains(got.Stderr, "Operation not permitted") {
		t.Fatalf("the kernel doesn't refuse links: %+v", got)
	}
	return a
}

func TestUploadWhereTheKernelRefusesLinksGetsTheSameNames(t *testing.T) {
	t.Parallel()
	a := withoutLinks(t)
	for _, c := range uploadcases.Names {
		f := a.upload(t, c.Raw, []byte(c.Case))
		if got, err := os.ReadFile(f.Path); f.Name != c.Want || err != nil || string(got) != c.Case {
			t.Errorf("%s: %q became %q and holds %q, %v, want %q", c.Case, c.Raw, f.Name, got, err, c.Want)
		}
		a.output(t, "rm -r uploads")
	}
}

func TestUploadWhereTheKernelRefusesLinksOverwritesNothing(t *testing.T) {
	t.Parallel()
	a := withoutLinks(t)
	for _, c := range uploadcases.Collisions {
		a.output(t, "rm -rf uploads")
		a.uploadMany(t, c.Name, c.N-1)
		if f := a.upload(t, c.Name, []byte("the last")); f.Name != c.Want {
			t.Errorf("%s: the file %d of the name is %q, want %q", c.Case, c.N, f.Name, c.Want)
		}
		contents := map[string]bool{}
		for _, name := range a.uploaded(t) {
			data, err := os.ReadFile(filepath.Join(a.workspace, "uploads", name))
			if err != nil {
				t.Fatal(err)
			}
			contents[string(data)] = true
		}
		if len(contents) != c.N || len(a.uploaded(t)) != c.N {
			t.Errorf("%s: %d contents in %d files, want %d", c.Case, len(contents), len(a.uploaded(t)), c.N)
		}
	}
}

// uploadMany uploads n files of one name, several at a time.
func (a *agent) uploadMany(t *testing.T, name string, n int) {
	t.Helper()
	const atATime = 16
	var workers sync.WaitGroup
	next := make(chan int)
	for range atATime {
		workers.Go(func() {
			for i := range next {
				data := fmt.Sprint(i)
				if f, err := a.client.Upload(t.Context(), a.pod, name, int64(len(data)), strings.NewReader(data)); err != nil {
					t.Errorf("upload %q: %v, %v", name, f, err)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
}

func TestUploadWhereTheKernelRefusesLinksIsHiddenUntilItIsWhole(t *testing.T) {
	t.Parallel()
	a := withoutLinks(t)
	broken(t, a.halfUploaded(t, "half.txt"))
	if got := a.uploaded(t); len(got) != 0 {
		t.Errorf("%q is left", got)
	}
}
