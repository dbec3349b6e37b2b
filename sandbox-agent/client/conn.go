package client

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// countingConn counts what was written, which tells a request that never left
// from one that may have arrived. A write under way counts already: who gives up
// meanwhile can't know how far it got.
type countingConn struct {
	net.Conn
	written atomic.Int64
}

func (c *countingConn) Write(p []byte) (int, error) {
	c.written.Add(int64(len(p)))
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n - len(p)))
	return n, err
}

const (
	// largePiece is what a body is sent in: of eight times the size that net/http
	// has, pieces take a fraction of the processor's time.
	largePiece = 256 << 10
	smallPiece = 32 << 10
	// maxLarge is how many bodies have such pieces at a time: one that drips holds
	// its piece for as long as it takes.
	maxLarge = 64
)

var (
	large       = make(chan struct{}, maxLarge)
	largePieces = sync.Pool{New: func() any { return new([largePiece]byte) }}
)

// piece returns a buffer, a large one if there are not too many, until free is
// called.
func piece() (b []byte, free func()) {
	select {
	case large <- struct{}{}:
	default:
		return make([]byte, smallPiece), func() {}
	}
	p := largePieces.Get().(*[largePiece]byte)
	return p[:], func() {
		largePieces.Put(p)
		<-large
	}
}

// ReadFrom implements io.ReaderFrom, by which net/http sends a body of known
// length.
func (c *countingConn) ReadFrom(r io.Reader) (sent int64, err error) {
	piece, free := piece()
	defer free()
	for {
		n, err := r.Read(piece)
		if n > 0 {
			written, failed := c.Write(piece[:n])
			sent += int64(written)
			if failed != nil {
				return sent, failed
			}
		}
		if errors.Is(err, io.EOF) {
			return sent, nil
		}
		if err != nil {
			return sent, err
		}
	}
}
