package front

import (
	"bytes"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/berth-dev/berth/gateway/splice"
)

// KeepAlive is how a call that says nothing for long stays alive. The MCP SDK
// sends response headers with the first event only, and Node gives up on headers
// after 300 s, many a proxy on silence after 60 s. So headers leave early, and
// comments, which SSE clients ignore, follow.
type KeepAlive struct {
	// Flush is how long a call may be silent before its headers leave. Most calls
	// are done by then, and keep an HTTP status of their own.
	Flush time.Duration
	// Interval is the time between comments.
	Interval time.Duration
	// WriteTimeout is how long a client may take to read one event, however large:
	// others wait for the room that a large one takes.
	WriteTimeout time.Duration
}

// wrap lets what next answers be kept alive, once startStream was called.
func (k KeepAlive) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &streamWriter{w: w, header: make(http.Header, 4), options: k}
		r = r.WithContext(splice.With(withStream(r.Context(), s), &s.splices))
		defer s.close()
		next.ServeHTTP(s, r)
	})
}

// comment is what a client of Server-Sent Events skips.
var comment = []byte(": keep-alive\n\n")

// errClosed is returned by writes after the handler has returned.
var errClosed = errors.New("response is complete")

// streamWriter lets a timer write comments between the handler's writes, each of
// which is a whole event. It has a header of its own, because the handler
// changes it without a lock.
type streamWriter struct {
	w       http.ResponseWriter
	options KeepAlive
	splices splice.Splices

	mu     sync.Mutex
	header http.Header
	timer  *time.Timer
	closed bool
	// committed: the headers have left.
	committed bool
	// streaming: they have left as those of a stream, by the timer before the
	// handler chose, or with the handler's first event.
	streaming bool
	// framing: the handler has since chosen another status, so what it writes is
	// a bare JSON-RPC message. It must become an event of the stream.
	framing bool
}

// start arms the timer. It is called once the request has been read.
func (s *streamWriter) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(s.options.Flush, s.beat)
}

func (s *streamWriter) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if !s.committed {
		s.committed, s.streaming = true, true
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache, no-transform")
		h.Set("X-Accel-Buffering", "no")
		s.w.WriteHeader(http.StatusOK)
	}
	s.extend()
	if _, err := s.w.Write(comment); err != nil {
		return // the client has gone, which its context tells
	}
	_ = http.NewResponseController(s.w).Flush() // fails as the write above does
	s.timer.Reset(s.options.Interval)
}

// extend gives the client its time for the next write. A connection that can't
// have deadlines is a test's.
func (s *streamWriter) extend() {
	_ = http.NewResponseController(s.w).SetWriteDeadline(time.Now().Add(s.options.WriteTimeout))
}

// Header implements http.ResponseWriter.
func (s *streamWriter) Header() http.Header { return s.header }

// WriteHeader implements http.ResponseWriter.
func (s *streamWriter) WriteHeader(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeHeader(status)
}

func (s *streamWriter) writeHeader(status int) {
	if s.streaming && status != http.StatusOK {
		s.framing = true
	}
	if s.committed {
		return
	}
	s.committed = true
	h := s.w.Header()
	closes := h.Get("Connection") == "close"
	for k, v := range s.header {
		h[k] = v
	}
	if closes { // which the SDK doesn't know when it says keep-alive
		h.Set("Connection", "close")
	}
	if h.Get("Content-Type") == "text/event-stream" && status == http.StatusOK {
		s.streaming = true
		h.Set("X-Accel-Buffering", "no")
	}
	s.w.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (s *streamWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, errClosed
	}
	s.writeHeader(http.StatusOK)
	event := p
	if s.framing {
		event = append([]byte("event: message\ndata: "), bytes.ReplaceAll(p, []byte("\n"), []byte(" "))...)
		event = append(event, "\n\n"...)
	}
	s.extend()
	if err := s.splices.Write(s.w, event); err != nil {
		return 0, err
	}
	return len(p), nil
}

// FlushError lets http.ResponseController flush under the lock.
func (s *streamWriter) FlushError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	return http.NewResponseController(s.w).Flush()
}

// Unwrap lets http.ResponseController reach the connection.
func (s *streamWriter) Unwrap() http.ResponseWriter { return s.w }

// close ends the timer. A handler that wrote nothing has its status sent.
func (s *streamWriter) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	if !s.committed {
		s.writeHeader(http.StatusOK)
	}
	// The next request on this connection has its own time.
	_ = http.NewResponseController(s.w).SetWriteDeadline(time.Time{})
}
