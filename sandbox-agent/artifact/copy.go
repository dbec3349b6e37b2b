package artifact

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/spool"
)

const copyBuffer = 128 << 10

// source is a file that others may write to.
type source interface {
	io.ReaderAt
	Stat() (os.FileInfo, error)
}

// copied takes the bytes of f, which are size, into a file without a name.
func (e *export) copied(f *os.File, size, limit int64) (*item, error) {
	dst, err := spool.Create(e.store.spools)
	if err != nil {
		return nil, spaceError(err)
	}
	it := &item{file: dst}
	if shared, ok := clone(dst, f); !ok {
		it.Size, it.SHA256, err = e.read(dst, f, size)
	} else if it.Size, err = shared, e.reserve(shared, dst); err == nil {
		it.SHA256, err = sum(io.NewSectionReader(dst, 0, shared))
	}
	if err == nil && it.Size > limit {
		err = ErrChanged // to that meanwhile
	}
	if err != nil {
		dst.Close()
		return nil, err
	}
	return it, nil
}

// read copies size bytes.
func (e *export) read(dst *os.File, f source, size int64) (int64, string, error) {
	if err := e.reserve(size, dst); err != nil {
		return 0, "", err
	}
	digest, err := moment(dst, f, size)
	return size, digest, err
}

// cloned takes a large file at the cost of none of its bytes. It returns nil where
// the file system can't do that, or where there is no room for what the two may come
// to differ in.
func (e *export) cloned(f *os.File, limit int64) *item {
	dst, err := spool.Create(e.store.spools)
	if err != nil {
		return nil
	}
	size, ok := clone(dst, f)
	if !ok || size > limit || e.reserve(size, dst) != nil {
		dst.Close()
		return nil
	}
	it := &item{file: dst}
	it.Size = size
	return it
}

// clone lets dst share the blocks of f until either is written to: the bytes of one
// moment, of which it returns how many they are.
func clone(dst, f *os.File) (size int64, ok bool) {
	if spool.Clone(dst, f) != nil {
		return 0, false
	}
	info, err := dst.Stat()
	if err != nil {
		return 0, false
	}
	return info.Size(), true
}

func sum(r io.Reader) (string, error) {
	hash := sha256.New()
	if _, err := io.CopyBuffer(hash, r, make([]byte, copyBuffer)); err != nil {
		return "", spaceError(err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// moment writes the first size bytes of src to dst, and returns their SHA-256.
// They are all there were at one moment: src is read once more, and ErrChanged
// returned when it differs, or says that it was written to. A src that only grew
// is what it was before.
func moment(dst *os.File, src source, size int64) (string, error) {
	before, err := src.Stat()
	if err != nil {
		return "", ErrNotFound
	}
	hash := sha256.New()
	buffer := make([]byte, 2*copyBuffer)
	n, err := io.CopyBuffer(io.MultiWriter(hash, io.NewOffsetWriter(dst, 0)), io.NewSectionReader(src, 0, size), buffer)
	if err != nil {
		return "", spaceError(err)
	}
	same := n == size && before.Size() >= size
	for at := int64(0); same && at < size; at += copyBuffer {
		length := min(size-at, copyBuffer)
		was, is := buffer[:length], buffer[copyBuffer:copyBuffer+length]
		if _, err := dst.ReadAt(was, at); err != nil {
			return "", fmt.Errorf("copy file: %w", bare(err))
		}
		if _, err := src.ReadAt(is, at); err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("copy file: %w", bare(err))
		}
		same = bytes.Equal(was, is)
	}
	after, err := src.Stat()
	if err != nil || !same || after.Size() <= size && times(before) != times(after) {
		return "", ErrChanged
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// times are when a file was written to, and when that or anything else of it
// changed.
func times(info os.FileInfo) [2]syscall.Timespec {
	st := info.Sys().(*syscall.Stat_t) // that of package os, on Linux
	return [2]syscall.Timespec{st.Mtim, st.Ctim}
}

func spaceError(err error) error {
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EROFS), errors.Is(err, unix.EACCES):
		return ErrNoSpace
	}
	return fmt.Errorf("copy file: %w", bare(err))
}

// bare drops the name from an error.
func bare(err error) error {
	var named *os.PathError
	if errors.As(err, &named) {
		return named.Err
	}
	return err
}
