package front

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
)

// fileBody is a body whose pieces have a time each. A backstop: the agent's own is
// shorter.
type fileBody struct {
	body            io.Reader
	extend, release func()

	mu      sync.Mutex
	n       int64
	begun   bool
	ended   bool
	stopped bool
}

// Read implements io.Reader.
func (b *fileBody) Read(p []byte) (int, error) {
	if err := b.begin(); err != nil {
		return 0, err
	}
	n, err := b.body.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n += int64(n)
	if errors.Is(err, io.EOF) {
		b.ended = true
		if !b.stopped {
			b.release()
		}
	}
	return n, err
}

func (b *fileBody) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.ended:
		return io.EOF
	case b.stopped:
		return http.ErrBodyReadAfterClose
	}
	b.begun = true
	b.extend()
	return nil
}

// stop ends the body for who still has it, and tells whether it was never read.
func (b *fileBody) stop() (unread bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	return !b.begun
}

func (b *fileBody) read() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.n
}

// stalled tells whether a body ended because nothing came of it.
func stalled(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
