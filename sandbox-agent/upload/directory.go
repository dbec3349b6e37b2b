package upload

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/filename"
	"github.com/berth-dev/berth/sandbox-agent/openat"
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
	dir, err := openat.Directory(int(parent.Fd()), name)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) { // a link is either
		return nil, ErrDirectory
	}
	return dir, err
}

func create(dir *os.File, name string) (*os.File, error) {
	return openat.Create(int(dir.Fd()), name, 0o666)
}

func link(dir *os.File, from, to string) error {
	return unix.Linkat(int(dir.Fd()), from, int(dir.Fd()), to, 0)
}

func remove(dir *os.File, name string) error {
	return unix.Unlinkat(int(dir.Fd()), name, 0)
}

// Sweep removes temporary files that nobody has written to for an hour: an agent
// that was killed left them. It reads at most so many names.
func Sweep(dir *os.File, now time.Time, most int) {
	const some = 256
	for most > 0 {
		names, err := dir.Readdirnames(min(some, most))
		most -= len(names)
		for _, name := range names {
			var is unix.Stat_t
			if filename.IsTemporary(name) && unix.Fstatat(int(dir.Fd()), name, &is, unix.AT_SYMLINK_NOFOLLOW) == nil &&
				is.Mode&unix.S_IFMT == unix.S_IFREG && time.Unix(is.Mtim.Unix()).Before(now.Add(-stale)) {
				_ = remove(dir, name) // the next sweep tries again
			}
		}
		if err != nil { // io.EOF, as a rule
			return
		}
	}
}
