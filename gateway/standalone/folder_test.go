//go:build linux

package standalone

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The folder of a gateway that was killed is removed; one that is in use, what is
// not this mode's, and what a link leads to are left alone.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	log := slog.New(slog.DiscardHandler)
	inUse, err := makeFolder(log)
	if err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"berth-standalone-killed/1/workspace/ro", "berth-standalone-empty", "berth-standalone-other", "berth", "elsewhere"} {
		if err := os.MkdirAll(path(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"berth-standalone-killed/lock", "berth-standalone-killed/1/workspace/ro/f", "berth-standalone-other/f", "berth-standalone-file", "elsewhere/lock"} {
		if err := os.WriteFile(path(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(path("berth-standalone-killed/1/workspace/ro"), 0o500); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path("elsewhere"), path("berth-standalone-link")); err != nil {
		t.Fatal(err)
	}
	next, err := makeFolder(log)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"berth", "berth-standalone-file", "berth-standalone-link", "berth-standalone-other", filepath.Base(inUse.path), filepath.Base(next.path), "elsewhere"}
	slices.Sort(want)
	if diff := cmp.Diff(want, names(t, dir)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if got := names(t, path("elsewhere")); len(got) != 1 {
		t.Errorf("what the link leads to has %v", got)
	}
	for _, f := range []*folder{inUse, next} {
		if err := f.close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(f.path); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", f.path, err)
		}
	}
}

// A folder that another gateway took for one left behind is not used.
func TestFolderThatIsGoneIsNotLocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	if _, ok, err := lockIn(path); ok || err != nil {
		t.Errorf("locked in a directory that is gone: %v, %v", ok, err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	file, ok, err := lockIn(path)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	defer file.Close()
	if err := removeLeftover(path); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("what is locked was removed: %v", err)
	}
}

func TestSessionFolder(t *testing.T) {
	t.Parallel()
	f := folder{path: t.TempDir()}
	for range 2 {
		dir, err := f.add()
		if err != nil {
			t.Fatal(err)
		}
		if got := names(t, dir); !slices.Equal(got, []string{"tmp", "workspace"}) {
			t.Errorf("%s holds %v", dir, got)
		}
		if info, err := os.Stat(filepath.Join(dir, "tmp")); err != nil || info.Mode() != os.ModeDir|os.ModeSticky|0o777 {
			t.Errorf("tmp is %v, %v", info.Mode(), err)
		}
	}
	if got := names(t, f.path); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("folders %v", got)
	}
}

// A socket's path has a limit, which is told of before anything is made.
func TestPathTooLongForASocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 80))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	if _, err := makeFolder(slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("error %v", err)
	}
	if got := names(t, dir); len(got) > 0 {
		t.Errorf("it left %v", got)
	}
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
