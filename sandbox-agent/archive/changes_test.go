package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// onWrite calls a function when the first byte of a file, read by then, is written.
type onWrite struct {
	io.Writer
	do     func()
	writes int
}

func (w *onWrite) Write(p []byte) (int, error) {
	if w.writes++; w.writes == 2 { // the first is gzip's own
		w.do()
	}
	return w.Writer.Write(p)
}

func incompressible(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b) // never fails
	return b
}

// TestChangesMeanwhile: a file is read while its archive is written.
func TestChangesMeanwhile(t *testing.T) {
	t.Parallel()
	noise := incompressible(4 * bufferSize)
	for name, c := range map[string]struct {
		change func(path string) error
		want   error
		report string
	}{
		"nothing":   {func(string) error { return nil }, nil, ""},
		"grown":     {func(path string) error { return os.Truncate(path, 5*bufferSize) }, nil, `1 changed meanwhile, and are left out or mixed of before and after ("t/f" first)`},
		"shrunk":    {func(path string) error { return os.Truncate(path, 3*bufferSize) }, ErrShrank, ""},
		"rewritten": {func(path string) error { return os.WriteFile(path, noise, 0o600) }, nil, `1 changed meanwhile, and are left out or mixed of before and after ("t/f" first)`},
		"removed":   {os.Remove, nil, `1 changed meanwhile, and are left out or mixed of before and after ("t/f" first)`},
	} {
		top := t.TempDir()
		path := filepath.Join(top, "f")
		must(t, os.WriteFile(path, noise, 0o600), os.Chtimes(path, born, born))
		f, err := os.Open(top)
		must(t, err)
		var out bytes.Buffer
		report, err := write(t.Context(), &onWrite{Writer: &out, do: func() { must(t, c.change(path)) }}, f, Options{Name: "t", Bytes: 1 << 30}, loose)
		must(t, f.Close())
		if !errors.Is(err, c.want) || report.String() != c.report {
			t.Errorf("%s: want %v and %q, got %v and %q", name, c.want, c.report, err, report)
		}
		if err == nil {
			if got := entries(t, out.Bytes()); len(got) != 2 || len(got[1].Content) != len(noise) {
				t.Errorf("%s: %q", name, names(got))
			}
		}
	}
}

// TestASmallFileThatShrankIsAsLongAsItIs, rather than filled up.
func TestASmallFileThatShrankIsAsLongAsItIs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	must(t, os.WriteFile(path, []byte("short"), 0o600))
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	for _, announced := range []int64{6, bufferSize, bufferSize + 1} {
		_, err := f.Seek(0, io.SeekStart)
		must(t, err)
		var st unix.Stat_t
		must(t, unix.Fstat(int(f.Fd()), &st))
		st.Size = announced
		var out bytes.Buffer
		w := &walk{ctx: t.Context(), tar: tar.NewWriter(&out), left: 1 << 30, buffer: make([]byte, bufferSize)}
		must(t, w.file(f, &st, "f"), w.tar.Close())
		r := tar.NewReader(&out)
		h, err := r.Next()
		must(t, err)
		if h.Size != 5 || w.report.changed.n != 1 {
			t.Errorf("%d bytes were announced: %d kept, report %q", announced, h.Size, w.report)
		}
	}
}

// TestAnArchiveEndsWithItsContext, also within a file and a directory.
func TestAnArchiveEndsWithItsContext(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	noise := incompressible(4 * bufferSize)
	must(t, os.WriteFile(filepath.Join(top, "f"), noise, 0o600))
	f, err := os.Open(top)
	must(t, err)
	defer f.Close()
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	var out bytes.Buffer
	if _, err := Write(ctx, &onWrite{Writer: &out, do: func() { cancel(gone) }}, f, Options{Name: "t", Bytes: 1 << 30}); !errors.Is(err, context.Canceled) || out.Len() > len(noise)/2 {
		t.Errorf("after its first bytes: %d bytes, %v", out.Len(), err)
	}
	out.Reset()
	if _, err := Write(ctx, &out, f, Options{Name: "t"}); !errors.Is(err, context.Canceled) {
		t.Errorf("before: %v", err)
	}
	full := errors.New("full")
	_, err = f.Seek(0, io.SeekStart)
	must(t, err)
	if _, err := Write(t.Context(), failing{full}, f, Options{Name: "t", Bytes: 1 << 30}); !errors.Is(err, full) {
		t.Errorf("want the writer's error, got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestALeasedFileIsLeftOut: its process would have to be waited for.
func TestALeasedFileIsLeftOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("leased"), 0o600))
	f, err := os.OpenFile(filepath.Join(dir, "f"), os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	signal.Ignore(unix.SIGIO) // that another wants it
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	must(t, err)
	top, err := os.Open(dir)
	must(t, err)
	defer top.Close()
	report, err := write(t.Context(), io.Discard, top, Options{Name: "t", Bytes: 1 << 30}, loose)
	if want := `1 left out as unreadable ("t/f" first)`; err != nil || report.String() != want {
		t.Errorf("want %q, got %q, %v", want, report.String(), err)
	}
}
