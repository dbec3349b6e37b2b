package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// written is a file that others write to while it is read.
type written struct {
	*os.File
	reads int
	at    map[int]func(*os.File) error // by how often it was read
	t     *testing.T
}

func (w *written) ReadAt(p []byte, off int64) (int, error) {
	if change := w.at[w.reads]; change != nil {
		if err := change(w.File); err != nil {
			w.t.Error(err)
		}
	}
	w.reads++
	return w.File.ReadAt(p, off)
}

// TestACopyIsOfOneMoment: a file that is written to while it is read is copied as
// it was at some time in between, or not at all.
func TestACopyIsOfOneMoment(t *testing.T) {
	t.Parallel()
	const size = 4 * copyBuffer // two reads for the copy, four to look again
	at := time.Unix(1_700_000_000, 0)
	// mapped writes as a mapping does: the times tell nothing.
	mapped := func(content string, off int64) func(*os.File) error {
		return func(f *os.File) error {
			_, err := f.WriteAt([]byte(content), off)
			return errors.Join(err, os.Chtimes(f.Name(), at, at))
		}
	}
	for name, c := range map[string]struct {
		at   map[int]func(*os.File) error
		want error
		size int64
	}{
		"nothing happens":                {nil, nil, size},
		"the front once it was copied":   {map[int]func(*os.File) error{1: mapped("x", 0)}, ErrChanged, size},
		"the end before it was copied":   {map[int]func(*os.File) error{1: mapped("x", size-1)}, ErrChanged, size}, // by its ctime
		"once copied":                    {map[int]func(*os.File) error{2: mapped("x", size-1)}, ErrChanged, size},
		"grown":                          {map[int]func(*os.File) error{1: func(f *os.File) error { return f.Truncate(size + 1) }}, nil, size},
		"grown, and changed":             {map[int]func(*os.File) error{1: func(f *os.File) error { return errors.Join(f.Truncate(size+1), mapped("x", 0)(f)) }}, ErrChanged, size},
		"cut while it is copied":         {map[int]func(*os.File) error{1: func(f *os.File) error { return f.Truncate(size - 1) }}, ErrChanged, size},
		"cut once it was":                {map[int]func(*os.File) error{3: func(f *os.File) error { return f.Truncate(0) }}, ErrChanged, size},
		"cut, and as long again":         {map[int]func(*os.File) error{3: func(f *os.File) error { return errors.Join(f.Truncate(0), f.Truncate(size)) }}, ErrChanged, size},
		"shorter than it was said to be": {nil, ErrChanged, size + 1},
		"empty, and grown":               {map[int]func(*os.File) error{0: func(f *os.File) error { return f.Truncate(size + 1) }}, nil, 0},
	} {
		path := filepath.Join(t.TempDir(), "f")
		content := noise(size)
		if err := errors.Join(os.WriteFile(path, content, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		dst, err := os.Create(filepath.Join(t.TempDir(), "dst"))
		if err != nil {
			t.Fatal(err)
		}
		sum, err := moment(dst, &written{File: f, at: c.at, t: t}, c.size)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: want %v, got %v", name, c.want, err)
		}
		if got, readErr := os.ReadFile(dst.Name()); err == nil && (readErr != nil || sum != hexSum(got) || string(got) != string(content[:c.size])) {
			t.Errorf("%s: the copy is not what the file was, or its digest not the copy's (%v)", name, readErr)
		}
		f.Close()
		dst.Close()
	}
}
