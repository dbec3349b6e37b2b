package serve

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long a reader may make no progress before it counts as gone.
const patience = 30 * time.Second

// patient is a connection whose Write gives up when its reader makes no progress
// for a while: a time-out for the whole of it would be too short for a slow
// reader and too long for one that is stuck.
type patient struct {
	net.Conn
	raw      syscall.RawConn
	patience time.Duration
}

func newPatient(conn net.Conn, patience time.Duration) net.Conn {
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			return &patient{conn, raw, patience}
		}
	}
	return conn
}

// Write writes all of p, or returns an error that matches
// os.ErrDeadlineExceeded when the reader is stuck.
func (c *patient) Write(p []byte) (n int, err error) {
	if n, err = c.try(p); n == len(p) || err != nil {
		return n, err // most answers: no timer is needed
	}
	defer func() { _ = c.SetWriteDeadline(time.Time{}) }() // fails only when the connection is closed
	const looks = 10
	waiting, progress := c.unread(), time.Now()
	for {
		if err := c.SetWriteDeadline(time.Now().Add(c.patience / looks)); err != nil {
			return n, err
		}
		k, err := c.Conn.Write(p[n:])
		n += k
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		// The kernel takes more only when a good part of what it holds was read.
		if now := c.unread(); k > 0 || now != waiting {
			waiting, progress = now, time.Now()
		}
		if time.Since(progress) >= c.patience {
			return n, err
		}
	}
}

const (
	// largePiece is what a file is sent in: of eight times the size that net/http
	// has, pieces take a fraction of the processor's time.
	largePiece = 256 << 10
	// maxLarge is how many readers get such pieces at a time: one that is slow holds
	// its piece for as long as it reads.
	maxLarge = 16
)

var (
	large  = make(chan struct{}, maxLarge)
	pieces = sync.Pool{New: func() any { return new([largePiece]byte) }}
)

// ReadFrom implements io.ReaderFrom, by which net/http sends a body that is copied
// into its response.
func (c *patient) ReadFrom(r io.Reader) (int64, error) {
	to := struct{ io.Writer }{c}
	select {
	case large <- struct{}{}:
		defer func() { <-large }()
	default:
		return io.Copy(to, r) // in pieces of 32 KiB
	}
	piece := pieces.Get().(*[largePiece]byte)
	defer pieces.Put(piece)
	return io.CopyBuffer(to, r, piece[:])
}

// try writes what the kernel takes at once.
func (c *patient) try(p []byte) (n int, err error) {
	err = c.raw.Write(func(fd uintptr) bool {
		n, _ = unix.Write(int(fd), p) // Conn.Write tells what is wrong
		return true
	})
	return max(0, n), err
}

// unread is how many bytes the reader has not acknowledged.
func (c *patient) unread() (n int) {
	err := c.raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	if err != nil {
		return 0
	}
	return n
}
