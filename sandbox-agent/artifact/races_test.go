package artifact

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// swapping exchanges two names of a directory until stop is called, at least n
// times.
func swapping(t *testing.T, dir, a, b string, n int) (stop func()) {
	t.Helper()
	ended := make(chan struct{})
	var swaps sync.WaitGroup
	swaps.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-ended:
				if i >= n {
					return
				}
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, a), unix.AT_FDCWD, filepath.Join(dir, b), unix.RENAME_EXCHANGE); err != nil {
				t.Error(err)
				return
			}
		}
	})
	return func() { close(ended); swaps.Wait() }
}

// TestSwappedLinksLeadNowhere: a file, and a directory on the way to one, that
// become links out of the workspace and back a thousand times.
func TestSwappedLinksLeadNowhere(t *testing.T) {
	t.Parallel()
	const swaps, secret = 1000, "the secret outside"
	outside := t.TempDir()
	write(t, outside, "f", []byte(secret))
	s, _, dir := fixture(t)
	write(t, dir, "file", []byte("inside"))
	write(t, dir, "d/f", []byte("inside"))
	for _, err := range []error{
		os.Symlink(filepath.Join(outside, "f"), filepath.Join(dir, "file-link")),
		os.Symlink(outside, filepath.Join(dir, "d-link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	defer swapping(t, dir, "file", "file-link", swaps)()
	defer swapping(t, dir, "d", "d-link", swaps)()
	taken := map[string]int{}
	for i := range swaps {
		path := []string{"file", "d/f"}[i%2]
		a, err := s.Take(t.Context(), file(path))
		switch {
		case err == nil:
			r, err := s.Open(a.ID)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); err != nil || string(got) != "inside" || a.Size != 6 || a.SHA256 != hexSum(got) {
				t.Fatalf("%s is %q (%+v, %v)", path, got, a, err)
			}
			r.Close()
			taken[path]++
			if err := s.Drop(a.ID); err != nil {
				t.Fatal(err)
			}
		case errors.Is(err, ErrKind), errors.Is(err, ErrOutside), errors.Is(err, ErrNotFound), errors.Is(err, ErrChanged):
		default:
			t.Errorf("%s: %v", path, err)
		}
	}
	if taken["file"] == 0 && taken["d/f"] == 0 {
		t.Log("no export met a file: the swaps were faster each time")
	}
	nothingIsReserved(t, s)
}

// TestSwappedLinksInATreeLeadNowhere: an archive holds them as links, or what was
// in their place.
func TestSwappedLinksInATreeLeadNowhere(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	write(t, outside, "f", []byte("the secret outside"))
	s, _, dir := fixture(t)
	for _, sub := range []string{"a", "b", "c", "d"} {
		write(t, dir, "tree/"+sub+"/f", []byte("inside"))
	}
	write(t, dir, "tree/file", []byte("inside"))
	for _, err := range []error{
		os.Symlink(outside, filepath.Join(dir, "tree", "link")),
		os.Symlink(filepath.Join(outside, "f"), filepath.Join(dir, "tree", "file-link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	defer swapping(t, filepath.Join(dir, "tree"), "b", "link", 1000)()
	defer swapping(t, filepath.Join(dir, "tree"), "file", "file-link", 1000)()
	for range 250 {
		a, err := s.Take(t.Context(), Request{Path: "tree", Archive: true, Limit: 1 << 20, Total: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Open(a.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range members(t, r) {
			if m.file && m.content != "inside" || strings.HasPrefix(m.name, "tree/link/") && m.name != "tree/link/" && m.name != "tree/link/f" {
				t.Fatalf("%s is in the archive, and holds %q", m.name, m.content)
			}
		}
		r.Close()
		if err := s.Drop(a.ID); err != nil {
			t.Fatal(err)
		}
	}
	nothingIsReserved(t, s)
}

// TestAFileThatIsRewrittenIsWholeOrRefused: a writer goes over it from its start to
// its end, again and again. At any moment it is some of one round, then the rest of
// the round before.
func TestAFileThatIsRewrittenIsWholeOrRefused(t *testing.T) {
	t.Parallel()
	const size, block = 64 << 10, 4 << 10
	for _, mapped := range []bool{false, true} {
		s, _, dir := fixture(t)
		path := filepath.Join(dir, "f")
		write(t, dir, "f", make([]byte, size))
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		memory, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		var writing sync.WaitGroup
		var enough atomic.Bool
		writing.Go(func() {
			for round := 0; !enough.Load(); round++ {
				for range 8 { // what a program does between two writes
					hexSum(memory)
				}
				content := bytes.Repeat([]byte{byte(round)}, block)
				for at := 0; at < size; at += block {
					if mapped {
						copy(memory[at:at+block], content)
					} else if _, err := f.WriteAt(content, int64(at)); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
		whole := 0
		for range 200 {
			a, err := s.Take(t.Context(), file("f"))
			if errors.Is(err, ErrChanged) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.Open(a.ID)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err != nil || !ofOneMoment(got) {
				t.Errorf("mapped %v: the copy is of no moment (%v)", mapped, err)
			}
			whole++
			r.Close()
			if err := s.Drop(a.ID); err != nil {
				t.Fatal(err)
			}
		}
		enough.Store(true)
		writing.Wait()
		t.Logf("mapped %v: %d of 200 exports met it between two writes", mapped, whole)
		if err := errors.Join(unix.Munmap(memory), f.Close()); err != nil {
			t.Error(err)
		}
		nothingIsReserved(t, s)
	}
}

// ofOneMoment tells whether content is of one round up to somewhere, and of the one
// before from there.
func ofOneMoment(content []byte) bool {
	first, changed := content[0], false
	for _, b := range content {
		switch {
		case !changed && b == first-1 && first != content[len(content)-1]:
			changed = true
		case changed && b != first-1, !changed && b != first:
			return false
		}
	}
	return true
}
