package artifact

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

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
			if strings.ContainsAny(a.Name, "\n\u202e/") || !utf8.ValidString(a.Name) {
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
		defer func() {
			if err := s.Drop(a.ID); err != nil {
				t.Error(err)
			}
		}()
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
