package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/upload"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// write writes and wants this answer.
func write(t *testing.T, r *Reach, path, content string, want wire.WrittenFile) {
	t.Helper()
	got, received, err := r.Write(path, strings.NewReader(content), 0)
	if err != nil || received != int64(len(content)) {
		t.Errorf("%q: %d bytes, %v", path, received, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%q (-want +got)\n%s", path, diff)
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	r, dir := fixture(t, root)
	// A new file, in directories that are missing.
	write(t, r, "a/b/c/new", "hello", wire.WrittenFile{Path: "a/b/c/new", Size: 5, Mode: "0644", Created: true})
	wantFile(t, dir, "a/b/c/new", "hello", 0o644)
	wantNames(t, filepath.Join(dir, "a/b/c"), "new")
	// One that is there keeps its mode.
	file(t, dir, "script", "old", 0o750)
	write(t, r, filepath.Join(dir, "script"), "", wire.WrittenFile{Path: "script", Mode: "0750"})
	wantFile(t, dir, "script", "", 0o750)
	// In a root, by its own path.
	write(t, r, filepath.Join(root, "f"), "x", wire.WrittenFile{Path: filepath.Join(root, "f"), Size: 1, Mode: "0644", Created: true})
	// A name as long as can be.
	long := strings.Repeat("n", unix.NAME_MAX)
	write(t, r, long, "x", wire.WrittenFile{Path: long, Size: 1, Mode: "0644", Created: true})
	wantNames(t, dir, "a", long, "script")
}

// A link stays, what it names is replaced; of a file's other names nothing is.
func TestWriteThroughLinks(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t)
	file(t, dir, "d/f", "old", 0o600)
	symlink(t, dir, "d/f", "link")
	symlink(t, dir, "d/made/new", "dangling")
	if err := os.Link(filepath.Join(dir, "d/f"), filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	write(t, r, "link", "new", wire.WrittenFile{Path: "d/f", Size: 3, Mode: "0600"})
	wantFile(t, dir, "d/f", "new", 0o600)
	wantFile(t, dir, "other", "old", 0o600)
	write(t, r, "dangling", "made", wire.WrittenFile{Path: "d/made/new", Size: 4, Mode: "0644", Created: true})
	for name, want := range map[string]string{"link": "d/f", "dangling": "d/made/new"} {
		if got, err := os.Readlink(filepath.Join(dir, name)); err != nil || got != want {
			t.Errorf("%s leads to %q, %v", name, got, err)
		}
	}
}

func TestWriteIsRefused(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t)
	outside := t.TempDir()
	file(t, dir, "f", "old", 0o644)
	directory(t, filepath.Join(dir, "d"))
	special(t, dir, "fifo", unix.S_IFIFO)
	symlink(t, dir, filepath.Join(outside, "new"), "out")
	symlink(t, dir, outside, "out directory")
	for path, kind := range map[string]error{
		"":                                 ErrRequest,
		".":                                ErrNotRegular,
		"d":                                ErrNotRegular,
		"fifo":                             ErrNotRegular,
		"../x":                             ErrOutside,
		"/etc/berth":                       ErrOutside,
		"out":                              ErrOutside,
		"out directory/new":                ErrOutside,
		"made/../../x":                     ErrOutside,
		"f/x":                              ErrNotDirectory,
		"f/x/y":                            ErrNotDirectory,
		"made/" + strings.Repeat("n", 256): ErrRequest,
	} {
		read := strings.NewReader("new")
		if _, received, err := r.Write(path, read, 0); !errors.Is(err, kind) || received != 0 || read.Len() != 3 {
			t.Errorf("%.80q: %v after %d bytes, want %v", path, err, received, kind)
		}
	}
	wantNames(t, dir, "d", "f", "fifo", "out", "out directory")
	wantNames(t, outside)
	wantFile(t, dir, "f", "old", 0o644)
}

// failing is a body that ends with an error.
func failing(content string, err error) io.Reader {
	return io.MultiReader(strings.NewReader(content), iotestErrReader{err})
}

type iotestErrReader struct{ err error }

func (r iotestErrReader) Read([]byte) (int, error) { return 0, r.err }

// A write that fails leaves what was there, and nothing else: no directory either.
func TestWriteThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t)
	file(t, dir, "f", "old", 0o644)
	for name, c := range map[string]struct {
		body io.Reader
		kind error
	}{
		"cut off":     {failing("half", io.ErrUnexpectedEOF), upload.ErrBody},
		"stalled":     {failing("half", upload.ErrStalled), upload.ErrStalled},
		"too large":   {strings.NewReader("eleven byte"), ErrTooLarge},
		"much larger": {io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20)), failing("", errors.New("read on"))), ErrTooLarge},
	} {
		for _, path := range []string{"f", "new", "made/here/new"} {
			if _, received, err := r.Write(path, c.body, 10); !errors.Is(err, c.kind) || received == 0 && path == "f" {
				t.Errorf("%s: %v after %d bytes", name, err, received)
			}
			if s, ok := c.body.(io.Seeker); ok {
				_, _ = s.Seek(0, io.SeekStart)
			} else {
				break
			}
		}
		wantNames(t, dir, "f")
		wantFile(t, dir, "f", "old", 0o644)
	}
	for size, fits := range map[int]bool{9: true, 10: true, 11: false} {
		if _, _, err := r.Write("at the limit", strings.NewReader(strings.Repeat("x", size)), 10); fits != (err == nil) {
			t.Errorf("%d bytes of 10: %v", size, err)
		}
	}
}

// While it is written, the file is as it was, and has no mode that others could
// read it by.
func TestWriteIsNotSeenBeforeItIsWhole(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t)
	file(t, dir, "f", "old", 0o600)
	body, sender := io.Pipe()
	written := make(chan error)
	go func() {
		_, _, err := r.Write("f", body, 0)
		written <- err
	}()
	if _, err := sender.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	wantFile(t, dir, "f", "old", 0o600)
	list, err := r.List(t.Context(), ".", Listing{Limit: 10})
	if err != nil || len(list.Entries) != 1 {
		t.Errorf("a list shows %+v, %v", list.Entries, err)
	}
	hidden, err := filepath.Glob(filepath.Join(dir, ".f.write-*"))
	if err != nil || len(hidden) != 1 {
		t.Fatalf("%q, %v", hidden, err)
	}
	if is, err := os.Stat(hidden[0]); err != nil || is.Mode() != 0o600 {
		t.Errorf("%v, %v", is.Mode(), err)
	}
	sender.Close()
	if err := <-written; err != nil {
		t.Error(err)
	}
	wantFile(t, dir, "f", "new", 0o600)
	wantNames(t, dir, "f")
}

// The mode of a new file is what the umask leaves; owner and special bits of one
// that is there stay where the agent may keep them.
func TestWriteKeepsOwnerAndMode(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to have files of others")
	}
	r, dir := fixture(t)
	file(t, dir, "f", "old", 0o644)
	if err := errors.Join(os.Chown(filepath.Join(dir, "f"), 1234, 4321), os.Chmod(filepath.Join(dir, "f"), 0o750|fs.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	write(t, r, "f", "new", wire.WrittenFile{Path: "f", Size: 3, Mode: "2750"})
	if _, err := r.Edit(t.Context(), "f", edit("new", "edited"), 0, noRoom); err != nil {
		t.Error(err)
	}
	wantFile(t, dir, "f", "edited", 0o750|fs.ModeSetgid)
	var is unix.Stat_t
	if err := unix.Stat(filepath.Join(dir, "f"), &is); err != nil || is.Uid != 1234 || is.Gid != 4321 {
		t.Errorf("belongs to %d:%d, %v", is.Uid, is.Gid, err)
	}
}

// A directory that a write made may be removed before anything is in it, as another
// write does that made it and failed: it is made anew.
func TestAWriteWhoseNewDirectoryIsRemoved(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t)
	for i := range 500 {
		made := filepath.Join(dir, fmt.Sprint(i))
		var written atomic.Bool
		var removed sync.WaitGroup
		removed.Go(func() {
			for !written.Load() && unix.Rmdir(made) != nil {
			}
		})
		if _, _, err := r.Write(fmt.Sprintf("%d/f", i), strings.NewReader("content"), 0); err != nil {
			t.Errorf("write %d: %v", i, err)
		}
		written.Store(true)
		removed.Wait()
	}
}
