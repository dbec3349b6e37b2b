package upload

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/filename"
)

// Directory is where uploads are, below the workspace.
const Directory = "uploads"

const (
	stale = time.Hour
	// sweepEvery is how often the directory is searched at most: it may be large.
	sweepEvery = 10 * time.Minute
)

// step opens a directory in parent, making it if it is missing. It follows no
// link.
func step(parent *os.File, name string) (*os.File, error) {
	// 0o777 less the umask, as mkdir does.
	if err := unix.Mkdirat(int(parent.Fd()), name, 0o777); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, err
	}
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Openat(int(parent.Fd()), name, flags, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) { // a link is either
		return nil, ErrDirectory
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// create makes a file, which must not exist, with the permissions that the umask
// leaves.
func create(dir *os.File, name string) (*os.File, error) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(int(dir.Fd()), name, flags, 0o666)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func link(dir *os.File, from, to string) error {
	return unix.Linkat(int(dir.Fd()), from, int(dir.Fd()), to, 0)
}

func remove(dir *os.File, name string) error {
	return unix.Unlinkat(int(dir.Fd()), name, 0)
}

// sweep removes temporary files that nobody has written to for long: an agent
// that was killed left them.
func sweep(dir *os.File, before time.Time) {
	const some = 256
	for {
		names, err := dir.Readdirnames(some)
		for _, name := range names {
			var is unix.Stat_t
			if filename.IsTemporary(name) && unix.Fstatat(int(dir.Fd()), name, &is, unix.AT_SYMLINK_NOFOLLOW) == nil &&
				is.Mode&unix.S_IFMT == unix.S_IFREG && time.Unix(is.Mtim.Unix()).Before(before) {
				_ = remove(dir, name) // the next sweep tries again
			}
		}
		if err != nil { // io.EOF, as a rule
			return
		}
	}
}
