package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"crypto/rand"

	"golang.org/x/sys/unix"
)

const copyBuffer = 128 << 10

// spool makes files without a name, where they cost no memory: a memory file
// would count against the container's memory limit, 128 of 8 MiB each.
type spool struct {
	dirs []string // tried in order
}

// create returns an unlinked file, open for reading and writing.
func (s spool) create() (*os.File, error) {
	var errs []error
	for _, dir := range s.dirs {
		fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
		if err == nil {
			return os.NewFile(uintptr(fd), "artifact"), nil
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
	name := filepath.Join(dir, ".berth-artifact-"+rand.Text())
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

// copy takes the bytes of src, at most limit, and their SHA-256 in hex. It
// returns ErrTooLarge when there are more.
func (s spool) copy(src io.Reader, limit int64) (f *os.File, size int64, sum string, err error) {
	if f, err = s.create(); err != nil {
		return nil, 0, "", spaceError(err)
	}
	hash := sha256.New()
	size, err = io.CopyBuffer(io.MultiWriter(hash, writer{f}), io.LimitReader(src, limit+1), make([]byte, copyBuffer))
	if err == nil && size > limit {
		err = ErrTooLarge
	}
	if err != nil {
		f.Close()
		return nil, 0, "", spaceError(err)
	}
	return f, size, hex.EncodeToString(hash.Sum(nil)), nil
}

// writer hides all but Write, so that the buffer is used and the hash sees the
// very bytes that are written.
type writer struct{ io.Writer }

func spaceError(err error) error {
	switch {
	case errors.Is(err, ErrTooLarge):
		return err
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EROFS), errors.Is(err, unix.EACCES):
		return ErrNoSpace
	}
	return fmt.Errorf("copy file: %w", err)
}
