// Package spool makes files without a name, where they cost no memory: a memory
// file would count against the container's memory limit.
package spool

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"

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

func createUnlinked(dir string) (*os.File, error) {
	name := filepath.Join(dir, ".berth-spool-"+rand.Text())
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
