package artifact

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/openat"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// What an export is refused with. Missing and unreadable files look alike.
var (
	ErrPath      = errors.New("the path is empty, too long, or holds a NUL")
	ErrOutside   = errors.New("the path is not inside the workspace")
	ErrNotFound  = errors.New("there is no such readable file in the workspace")
	ErrKind      = errors.New("the path is not a regular file")
	ErrDirectory = errors.New("the path is a directory: export it with archive: true, as a .tar.gz of it")
	ErrTooLarge  = errors.New("the file is larger than the limit")
	ErrArchive   = errors.New("the archive is larger than the limit: export a part of the directory")
	ErrTotal     = errors.New("it is larger than all artifacts together may be")
	ErrSlow      = fmt.Errorf("it took longer than %d s: export a part of it, or ask for no digest", wire.ExportSeconds)
	ErrBusy      = fmt.Errorf("%d other archives or digests are being made, for %d s now: try again once one is done", maxTurns, wire.ExportSeconds)
	ErrChanged   = errors.New("the file is written to all the time: export it when nothing writes to it")
	ErrTooMany   = fmt.Errorf("%d artifacts are held: wait until one expires, or drop one", wire.MaxArtifacts)
	ErrTooMuch   = errors.New("the artifacts that are held take all the room they may: wait until one expires, or drop one")
	ErrNoSpace   = errors.New("no space is left to hold a copy of it")
	ErrClosed    = errors.New("the agent is shutting down")
)

// relative returns path as one relative to the workspace, cleaned. It looks at
// the text alone.
func relative(workspace, path string) (string, error) {
	if path == "" || len(path) > wire.MaxPath || strings.ContainsRune(path, 0) {
		return "", ErrPath
	}
	if filepath.IsAbs(path) {
		rel, err := filepath.Rel(workspace, path)
		if err != nil {
			return "", ErrOutside
		}
		path = rel
	}
	if path = filepath.Clean(path); !filepath.IsLocal(path) {
		return "", ErrOutside
	}
	return path, nil
}

// open opens what is at path, relative to root. Directories on the way may be
// relative links as long as they stay inside (os.Root walks them), what is opened
// may not be one. Nothing blocks.
func open(root *os.Root, path string) (*os.File, os.FileInfo, error) {
	dir, err := root.OpenFile(filepath.Dir(path), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, refusal(err)
	}
	defer dir.Close()
	f, err := openat.File(int(dir.Fd()), filepath.Base(path))
	if err != nil {
		return nil, nil, refusal(err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, ErrNotFound
	}
	return f, info, nil
}

// refusal maps an error of opening. It drops the text, which may name an
// absolute path.
func refusal(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		switch errno {
		case unix.ELOOP, unix.ENXIO, unix.ENODEV: // a link, a socket, a device without driver
			return ErrKind
		case unix.EMFILE, unix.ENFILE, unix.ENOMEM:
			return fmt.Errorf("open file: %w", errno)
		default:
			return ErrNotFound
		}
	}
	return ErrOutside // os.Root's own: the path escapes
}
