package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/spool"
)

const copyBuffer = 128 << 10

// copyOf takes the bytes of src, at most limit, into a file without a name, and
// their SHA-256 in hex. It returns ErrTooLarge when there are more.
func copyOf(src io.Reader, dirs []string, limit int64) (f *os.File, size int64, sum string, err error) {
	if f, err = spool.Create(dirs); err != nil {
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
