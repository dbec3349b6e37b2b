package artifact

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/wire"
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
	const secret = "the secret outside"
	outside := t.TempDir()
	write(t, outside, "f", []byte(secret))
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
		zipped, err := gzip.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		for tr := tar.NewReader(zipped); ; {
			h, err := tr.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(tr)
			if err != nil || h.Typeflag == tar.TypeReg && string(content) != "inside" || bytes.Contains(content, []byte(secret)) {
				t.Fatalf("%s holds %q (%v)", h.Name, content, err)
			}
			if strings.HasPrefix(h.Name, "tree/link/") && h.Name != "tree/link/" && h.Name != "tree/link/f" {
				t.Fatalf("%s is in the archive", h.Name)
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

// TestClockJumps: an artifact lives no moment longer by a timer that is late, or
// set by a clock that was ahead.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	s, c, _ := fixture(t)
	first := take(t, s)
	c.Time = c.Time.Add(Lifetime) // no timer fires
	if _, err := s.Open(first.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("a late timer: want ErrNotFound, got %v", err)
	}
	if err := s.Drop(first.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("dropped after its time: want ErrNotFound, got %v", err)
	}
	later := take(t, s)
	c.Time = c.Time.Add(-time.Minute)
	sooner := take(t, s) // behind the other, and due before it
	c.Time = c.Time.Add(Lifetime)
	if _, err := s.Open(sooner.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("behind one that lives longer: want ErrNotFound, got %v", err)
	}
	if r, err := s.Open(later.ID); err != nil {
		t.Errorf("before its time: %v", err)
	} else {
		r.Close()
	}
	c.Advance(time.Minute)
	nothingIsReserved(t, s)
	if now := (SystemClock{}).Now(); !strings.Contains(now.String(), " m=") {
		t.Errorf("the system's clock is one that can be set: %s", now)
	}
}

// TestHeldFilesExpireExactly, beside artifacts with times of their own.
func TestHeldFilesExpireExactly(t *testing.T) {
	t.Parallel()
	s, c, dir := fixture(t)
	f, err := os.Open(filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.Hold(wire.Artifact{Name: "log", Size: 7}, f, c.Now().Add(Lifetime+1), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := take(t, s)
	c.Advance(Lifetime)
	if _, err := s.Open(a.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("the artifact: %v", err)
	}
	r, err := s.Open(id)
	if err != nil {
		t.Fatalf("in its last nanosecond: %v", err)
	}
	c.Advance(1)
	if _, err := s.Open(id); !errors.Is(err, ErrNotFound) {
		t.Errorf("after it: %v", err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "content" {
		t.Errorf("a read under way: %q, %v", got, err)
	}
	s.Release(id)
	r.Close()
	if _, err := f.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("want the file closed, got %v", err)
	}
}

// TestPaths: what is refused by its text, and what only by what is there.
func TestPaths(t *testing.T) {
	t.Parallel()
	s, _, dir := fixture(t)
	outside := t.TempDir()
	write(t, outside, "hard", []byte("linked"))
	deep := strings.Repeat("d/", 2047) // 4094 bytes
	at, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2047 {
		if err := at.Mkdir("d", 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := at.OpenRoot("d")
		if err != nil {
			t.Fatal(err)
		}
		at.Close()
		at = next
	}
	defer at.Close()
	write(t, dir, "a\nb", nil)
	write(t, dir, "x\u202ey", nil)
	write(t, dir, "\xff\xfe", nil)
	write(t, dir, "..name", nil)
	for _, err := range []error{
		at.WriteFile("f", nil, 0o600),
		at.WriteFile("ff", nil, 0o600),
		os.Link(filepath.Join(outside, "hard"), filepath.Join(dir, "hard")),
		os.Symlink("/proc/self", filepath.Join(dir, "self")),
		os.Symlink("/proc/self/exe", filepath.Join(dir, "exe")),
		os.Symlink("/dev/fd", filepath.Join(dir, "fd")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]error{
		deep + "f":                        nil, // 4,095 bytes
		deep + "ff":                       nil, // 4,096
		deep + "/ff":                      ErrPath,
		deep + "f/":                       nil, // as a path without the slash
		"hard":                            nil, // a file of the workspace, as far as anyone can tell
		"a\nb":                            nil,
		"x\u202ey":                        nil,
		"\xff\xfe":                        nil,
		"..name":                          nil,
		"self/environ":                    ErrOutside,
		"self/fd/0":                       ErrOutside,
		"exe":                             ErrKind,
		"fd/0":                            ErrOutside,
		"/proc/self/environ":              ErrOutside,
		"/dev/null":                       ErrOutside,
		"..":                              ErrOutside,
		"../" + filepath.Base(dir) + "/f": ErrOutside,
	} {
		for _, archive := range []bool{false, true} {
			a, err := s.Take(t.Context(), Request{Path: path, Archive: archive, Limit: 1 << 20, Total: 1 << 20})
			if !errors.Is(err, want) {
				t.Errorf("%.60q, archive %v: want %v, got %v", path, archive, want, err)
			}
			if strings.ContainsAny(a.Name, "\n\u202e\xff/") {
				t.Errorf("%.60q is called %q", path, a.Name)
			}
		}
	}
}

// FuzzTake: no path gives anything but what is in the workspace, or a refusal.
func FuzzTake(f *testing.F) {
	dir := f.TempDir()
	s, err := NewStore(dir, []string{dir}, SystemClock{})
	if err != nil {
		f.Fatal(err)
	}
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "d", "e"), 0o700),
		os.WriteFile(filepath.Join(dir, "d", "f"), []byte("inside"), 0o600),
		os.Symlink("/etc", filepath.Join(dir, "d", "etc")),
		os.Symlink("../d", filepath.Join(dir, "d", "self")),
		os.Symlink("../../../../../../etc/passwd", filepath.Join(dir, "d", "passwd")),
	} {
		if err != nil {
			f.Fatal(err)
		}
	}
	for _, path := range []string{"d/f", "d/self/f", "d/self/self/f", "d/etc/passwd", "d/passwd", "../etc/passwd", "d/../../etc/passwd", dir + "/d/f", "d/e/../f", ".", "d//f", "d/f/", "d\x00/f"} {
		f.Add(path, false)
		f.Add(path, true)
	}
	f.Fuzz(func(t *testing.T, path string, archive bool) {
		a, err := s.Take(t.Context(), Request{Path: path, Archive: archive, Limit: 1 << 20, Total: 1 << 20})
		if err != nil {
			if strings.Contains(err.Error(), "/") {
				t.Errorf("%q: %v", path, err)
			}
			return
		}
		defer s.Drop(a.ID)
		r, err := s.Open(a.ID)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		content, err := io.ReadAll(r)
		if err != nil || hexSum(content) != a.SHA256 || !archive && string(content) != "inside" {
			t.Errorf("%q: %q, %v", path, content, err)
		}
	})
}
