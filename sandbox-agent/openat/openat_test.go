package openat

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOnlyWhatIsThere: each call opens what the name is or says why it doesn't, at once, and
// no child inherits it.
func TestOnlyWhatIsThere(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(top, "file"), nil, 0o600), os.Mkdir(filepath.Join(top, "directory"), 0o700),
		os.Symlink("file", filepath.Join(top, "link")), os.Symlink("directory", filepath.Join(top, "there")),
		unix.Mkfifo(filepath.Join(top, "fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	dir, err := Base(unix.AT_FDCWD, top)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(dir)
	descriptor := func(f *os.File, err error) (int, error) {
		if err != nil {
			return -1, err
		}
		t.Cleanup(func() { f.Close() })
		return int(f.Fd()), nil
	}
	calls := map[string]func(name string) (int, error){
		"File":      func(name string) (int, error) { return descriptor(File(dir, name)) },
		"Directory": func(name string) (int, error) { return descriptor(Directory(dir, name)) },
		"Create":    func(name string) (int, error) { return descriptor(Create(dir, name, 0o600)) },
		"Path":      func(name string) (int, error) { return Path(dir, name) },
		"Base":      func(name string) (int, error) { return Base(dir, name) },
	}
	for name, want := range map[string]map[string]error{
		"File":      {"file": nil, "directory": nil, "fifo": nil, "link": unix.ELOOP, "there": unix.ELOOP, "none": unix.ENOENT},
		"Directory": {"file": unix.ENOTDIR, "directory": nil, "fifo": unix.ENOTDIR, "link": unix.ENOTDIR, "there": unix.ENOTDIR, "none": unix.ENOENT},
		"Path":      {"file": unix.ENOTDIR, "directory": nil, "fifo": unix.ENOTDIR, "link": unix.ENOTDIR, "there": unix.ENOTDIR, "none": unix.ENOENT},
		"Base":      {"file": unix.ENOTDIR, "directory": nil, "link": unix.ENOTDIR, "there": nil, "none": unix.ENOENT},
		"Create":    {"file": unix.EEXIST, "directory": unix.EEXIST, "fifo": unix.EEXIST, "link": unix.EEXIST, "new": nil},
	} {
		for at, want := range want {
			fd, err := calls[name](at)
			if !errors.Is(err, want) {
				t.Errorf("%s of %q: %v, want %v", name, at, err, want)
			}
			if err != nil {
				continue
			}
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("%s of %q: children inherit it (%v)", name, at, err)
			}
			if name == "Path" || name == "Base" {
				unix.Close(fd)
			}
		}
	}
}
