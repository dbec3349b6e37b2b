package artifactstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"sync"
	"time"
)

// source is a file on its way into a store. It gives its last bytes only if all
// of them have the digest that was announced, so that the store never has enough
// of another file to keep it.
type source struct {
	body  io.Reader
	left  int64
	want  string
	hash  hash.Hash
	watch *watchdog

	mu sync.Mutex // http.Transport may still read when it has returned
	// err is what went wrong on the file's side.
	err error
	// sent: the last bytes were given, so the store may have kept them.
	sent bool
}

func newSource(body io.Reader, f *File, w *watchdog) *source {
	return &source{body: body, left: f.Size, want: f.SHA256, hash: sha256.New(), watch: w}
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	if err, _ := s.state(); err != nil {
		return 0, err
	}
	if s.left == 0 {
		return 0, io.EOF
	}
	done := s.watch.reads()
	n, err := s.body.Read(p[:min(int64(len(p)), s.left)])
	done()
	s.hash.Write(p[:n])
	s.left -= int64(n)
	switch {
	case s.left == 0:
		if err := s.end(); err != nil {
			return 0, err
		}
		return n, nil
	case errors.Is(err, io.EOF):
		return 0, s.fail(errDiffers) // shorter than it was to be
	case err != nil:
		return 0, s.fail(err)
	}
	return n, nil
}

// end compares digests once all is read.
func (s *source) end() error {
	if hex.EncodeToString(s.hash.Sum(nil)) != s.want {
		return s.fail(errDiffers)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = s.err == nil
	return s.err
}

// abandon keeps the last bytes from being given, unless they were.
func (s *source) abandon(cause error) (sent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.sent && s.err == nil {
		s.err = cause
	}
	return s.sent
}

// until returns a context for sending the source that ends with ctx: at once while
// the last bytes were not given. After them the store may be about to keep the file,
// whoever has gone: its answer, for which there is cleanTimeout, says that it is
// done, so that a delete doesn't come too early.
func (s *source) until(ctx context.Context) (_ context.Context, stop func()) {
	sending, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	detach := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if !s.abandon(cause) || errors.Is(cause, errStalled) || errors.Is(cause, errSlow) {
			cancel(cause)
			return
		}
		timer := time.AfterFunc(cleanTimeout, func() { cancel(cause) })
		context.AfterFunc(sending, func() { timer.Stop() })
	})
	return sending, func() {
		detach()
		cancel(nil)
	}
}

func (s *source) fail(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	return err
}

// state tells what went wrong with the file, and whether all of it was given.
func (s *source) state() (err error, sent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err, s.sent
}
