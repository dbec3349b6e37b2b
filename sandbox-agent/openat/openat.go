// Package openat opens what one name in an open directory is, as it is at that moment: a
// link is not followed (ELOOP, or ENOTDIR for a directory), and nothing blocks. Whoever
// can swap names meanwhile leads it nowhere else.
package openat

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// File opens what is there for reading: whatever it is, so look before you read.
func File(dir int, name string) (*os.File, error) {
	return file(dir, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
}

// Directory opens a directory for reading its entries.
func Directory(dir int, name string) (*os.File, error) {
	return file(dir, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_DIRECTORY, 0)
}

// Create makes a file, which must not exist, with what the umask leaves of mode.
func Create(dir int, name string, mode uint32) (*os.File, error) {
	return file(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, mode)
}

func file(dir int, name string, flags int, mode uint32) (*os.File, error) {
	fd, err := open(dir, name, flags|unix.O_NOFOLLOW, mode)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Path opens a directory to go on from, which needs no permission to read it.
func Path(dir int, name string) (int, error) {
	return open(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
}

// Base is Path for a path that may lead through links.
func Base(dir int, path string) (int, error) {
	return open(dir, path, unix.O_PATH|unix.O_DIRECTORY, 0)
}

// open repeats a call that a signal interrupted: file systems in user space do that.
func open(dir int, name string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_CLOEXEC, mode)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}
