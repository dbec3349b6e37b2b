// Package spool makes files without a name: on disk, for what is large, since
// memory counts against the container's limit; in memory, for what is small and
// soon read.
package spool

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Create returns an unlinked file, open for reading and writing, in the first
// of dirs that takes one.
func Create(dirs []string) (*os.File, error) {
	var errs []error
	for _, dir := range dirs {
		fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
		if err == nil {
			return os.NewFile(uintptr(fd), "spool"), nil
		}
		f, err := createUnlinked(dir) // a file system without O_TMPFILE
		if err == nil {
			return f, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// prefix begins the names of files that have one for a moment.
const prefix = ".berth-spool-"

// IsSpool tells whether a file is called as this package's are, where they need a
// name for a moment.
func IsSpool(name string) bool { return strings.HasPrefix(name, prefix) }

func createUnlinked(dir string) (*os.File, error) {
	name := filepath.Join(dir, prefix+rand.Text())
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(name); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Clone makes f, which is empty, share the blocks of src, with its bytes of one
// moment. Few file systems can do that (XFS, Btrfs), and only within themselves.
func Clone(f, src *os.File) error {
	return os.NewSyscallError("clone", unix.IoctlFileClone(int(f.Fd()), int(src.Fd())))
}

// Memory returns a file in memory that holds content, to be read from its start.
// name is what /proc shows.
func Memory(name string, content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory file: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.WriteAt(content, 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("memory file: %w", err)
	}
	return f, nil
}
