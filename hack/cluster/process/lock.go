package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrLocked says that another process holds the lock.
var ErrLocked = errors.New("locked by another process")

// Lock takes the lock file, making it and its folder if needed, and waits for
// whoever holds it; waiting is called before it waits. The lock ends when the
// file is closed, at the latest with the process. The file itself stays: removing
// it would let two processes lock two files of one name.
func Lock(path string, waiting func()) (*os.File, error) {
	file, err := TryLock(path)
	if !errors.Is(err, ErrLocked) {
		return file, err
	}
	waiting()
	file, err = openLock(path)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return file, nil
}

// TryLock is Lock for those who don't wait: it returns ErrLocked.
func TryLock(path string) (*os.File, error) {
	file, err := openLock(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return file, nil
}

func openLock(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of a lock: %w", err)
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
}
