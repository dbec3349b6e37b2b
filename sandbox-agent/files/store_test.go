package files

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// fixture is what a session with these roots reaches, and its workspace.
func fixture(t testing.TB, roots ...string) (*Reach, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := NewStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Within(roots)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Done()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return r, dir
}

// file makes one, and directories on the way.
func file(t testing.TB, dir, name, content string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(dir, name)
	directory(t, filepath.Dir(path))
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func directory(t testing.TB, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func symlink(t testing.TB, dir, target, name string) {
	t.Helper()
	if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// special makes a FIFO, or whatever mode says.
func special(t testing.TB, dir, name string, mode uint32) {
	t.Helper()
	if err := unix.Mknod(filepath.Join(dir, name), mode|0o666, 0); err != nil {
		t.Fatal(err)
	}
}

func wantFile(t testing.TB, dir, name, content string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(dir, name)
	got, err := os.ReadFile(path)
	if err != nil || string(got) != content {
		t.Errorf("%s holds %.200q, %v, want %.200q", name, got, err, content)
	}
	if is, err := os.Stat(path); err != nil || is.Mode() != mode {
		t.Errorf("%s has mode %v, %v, want %v", name, is.Mode(), err, mode)
	}
}

// wantNames wants these names in a directory, and no others: no file that was
// being written.
func wantNames(t testing.TB, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff(names, got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", dir, diff)
	}
}
