package lock

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
)

func TestFileIsHeldUntilUnlocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := File(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := tryLock(t, path); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("a second lock of a held file gave %v, want that it would wait", err)
	}
	unlock()
	if err := tryLock(t, path); err != nil {
		t.Errorf("locking a file that was unlocked: %v", err)
	}
}

func tryLock(t *testing.T, path string) error {
	t.Helper()
	fd, err := syscall.Open(path, syscall.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	return syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
}
