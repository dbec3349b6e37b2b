package execlog

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/openat"
)

// Names below the workspace.
const (
	hidden = ".berth"
	logs   = "logs"
)

// ours is how the files of this package are named.
var ours = regexp.MustCompile(`^[0-9a-f]{16}\.(stdout|stderr)$`)

// newName is what the logs of one command have in common.
func newName() string {
	var b [8]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// directory is where the logs are, found anew each time: commands may move or
// replace it.
type directory struct {
	workspace *os.File
	name      string // of the workspace, absolute; empty when it is not plain
}

// plain is a name of a workspace that texts tell as it is. They have a bounded
// place for it (package output); in a pod it is /workspace.
var plain = regexp.MustCompile(`^/[A-Za-z0-9._/-]{0,63}$`)

func openDirectory(workspace string) (directory, error) {
	f, err := os.OpenFile(workspace, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return directory{}, fmt.Errorf("open workspace: %w", err)
	}
	name, err := filepath.Abs(workspace)
	if err != nil || !plain.MatchString(name) {
		name = ""
	}
	return directory{f, name}, nil
}

// open opens the directory, component by component and following no link. With
// create it makes what is missing.
func (d directory) open(create bool) (*os.File, error) {
	hiddenDir, made, err := step(d.workspace, hidden, create)
	if err != nil {
		return nil, err
	}
	defer hiddenDir.Close()
	if made {
		keepOutOfGit(hiddenDir)
	}
	dir, _, err := step(hiddenDir, logs, create)
	return dir, err
}

func step(parent *os.File, name string, create bool) (dir *os.File, made bool, err error) {
	if create {
		err := unix.Mkdirat(int(parent.Fd()), name, 0o700)
		if made = err == nil; err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, false, &os.PathError{Op: "make directory", Path: name, Err: err}
		}
	}
	dir, err = openat.Directory(int(parent.Fd()), name)
	if err != nil {
		return nil, false, &os.PathError{Op: "open directory", Path: name, Err: err}
	}
	return dir, made, nil
}

// keepOutOfGit spares a workspace that is a repository the sight of the logs.
func keepOutOfGit(dir *os.File) {
	f, err := openat.Create(int(dir.Fd()), ".gitignore", 0o600)
	if err != nil {
		return // a nicety
	}
	defer f.Close()
	_, err = f.WriteString("*\n")
	_ = err // a nicety
}

// create makes a log file, which must not exist.
func (d directory) create(name string) (*os.File, error) {
	dir, err := d.open(true)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, err := openat.Create(int(dir.Fd()), name, 0o600)
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: path.Join(hidden, logs, name), Err: err}
	}
	return f, nil
}

// remove unlinks a log file if it is still the one that was made: a command may
// have put another in its place.
func (d directory) remove(name string, made unix.Stat_t) {
	dir, err := d.open(false)
	if err != nil {
		return // gone already, or not where it was
	}
	defer dir.Close()
	var is unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &is, unix.AT_SYMLINK_NOFOLLOW); err != nil || is.Ino != made.Ino || is.Dev != made.Dev {
		return
	}
	_ = unix.Unlinkat(int(dir.Fd()), name, 0) // a directory that takes no removals keeps the file
}

// clear removes what an agent before this one left: a container's restart keeps
// the files.
func (d directory) clear() {
	dir, err := d.open(false)
	if err != nil {
		return // there is none
	}
	defer dir.Close()
	const some = 256
	for {
		names, err := dir.Readdirnames(some)
		for _, name := range names {
			var is unix.Stat_t
			if ours.MatchString(name) && unix.Fstatat(int(dir.Fd()), name, &is, unix.AT_SYMLINK_NOFOLLOW) == nil && is.Mode&unix.S_IFMT == unix.S_IFREG {
				_ = unix.Unlinkat(int(dir.Fd()), name, 0) // as in remove
			}
		}
		if err != nil { // io.EOF, as a rule
			return
		}
	}
}
