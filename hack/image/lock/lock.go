// Package lock lets one process at a time work in a directory.
package lock

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// File waits for the lock file at path; it is free again when the process ends.
func File(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening a lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), file.Close())
	}
	return func() { file.Close() }, nil
}
