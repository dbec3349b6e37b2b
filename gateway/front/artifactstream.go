package front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/berth-dev/berth/gateway/artifact"
)

// content is an artifact as http.ServeContent reads it: opened anew where a read
// doesn't go on from the one before.
type content struct {
	open  func(artifact.Part) (*artifact.Reading, error)
	first artifact.Part

	// reading is what is open, and at where in the artifact its next byte is; pos
	// is where ServeContent has sought.
	reading *artifact.Reading
	at, pos int64
	// failed is why a Read ended before its time.
	failed error
}

// begin opens the first part. One that begins beyond the end is ServeContent's to
// refuse, which then needs the size alone.
func (c *content) begin() error {
	reading, err := c.open(c.first)
	if errors.Is(err, artifact.ErrRange) {
		reading, err = c.open(artifact.Part{Length: 1})
	}
	if err != nil {
		return err
	}
	c.reading, c.at = reading, reading.Offset
	return nil
}

// Seek implements io.Seeker.
func (c *content) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
		c.pos = offset
	case io.SeekEnd:
		c.pos = c.reading.Size + offset
	default:
		return 0, fmt.Errorf("seek from %d: not supported", whence)
	}
	return c.pos, nil
}

// Read implements io.Reader.
func (c *content) Read(p []byte) (n int, err error) {
	if c.failed == nil && c.pos < c.reading.Size && !c.goesOn() {
		c.failed = c.reopen()
	}
	switch {
	case c.failed != nil:
		return 0, c.failed
	case c.pos >= c.reading.Size:
		return 0, io.EOF
	}
	n, err = c.reading.Body.Read(p)
	c.at += int64(n)
	c.pos = c.at
	if errors.Is(err, io.EOF) {
		err = nil // the next Read knows whether it is the artifact's end
		if c.goesOn() {
			err = io.ErrUnexpectedEOF
		}
	}
	if err != nil {
		c.failed = err
	}
	return n, err
}

// goesOn tells whether what is open has the next byte.
func (c *content) goesOn() bool {
	return c.at == c.pos && c.at < c.reading.Offset+c.reading.Length
}

// reopen opens the artifact from pos to its end: the same, or nothing more is sent.
func (c *content) reopen() error {
	c.close()
	reading, err := c.open(artifact.Part{Offset: c.pos})
	if err != nil {
		return err
	}
	before := c.reading
	c.reading, c.at = reading, reading.Offset
	if reading.Size != before.Size || reading.ETag != before.ETag || reading.Offset != c.pos {
		return errors.New("the artifact became another one")
	}
	return nil
}

func (c *content) close() {
	if c.reading != nil {
		c.reading.Body.Close() // what it has to tell was told by Read
	}
}

// stream is a response whose client has a time for each piece.
type stream struct {
	http.ResponseWriter
	stall  time.Duration
	status int
	sent   int64
	// failed is why a piece didn't reach the client.
	failed error
}

// end ends a write under way when ctx does. The function that it returns gives the
// connection's next request its own time.
func (s *stream) end(ctx context.Context) (stop func()) {
	control := http.NewResponseController(s.ResponseWriter)
	detach := context.AfterFunc(ctx, func() { _ = control.SetWriteDeadline(time.Now()) }) // fails if the connection is gone
	return func() {
		detach()
		_ = control.SetWriteDeadline(time.Time{})
	}
}

// WriteHeader implements http.ResponseWriter. A range that can't be served is
// refused in this package's words.
func (s *stream) WriteHeader(status int) {
	s.status = status
	if status == http.StatusRequestedRangeNotSatisfiable {
		h := s.Header()
		h.Del("Content-Disposition")
		refuse(s.ResponseWriter, status, "bad_range", "the range is malformed, or begins at or beyond the end")
		return
	}
	s.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (s *stream) Write(p []byte) (int, error) {
	if s.status == http.StatusRequestedRangeNotSatisfiable {
		return len(p), nil
	}
	// A connection that can't have deadlines is a test's.
	_ = http.NewResponseController(s.ResponseWriter).SetWriteDeadline(time.Now().Add(s.stall))
	n, err := s.ResponseWriter.Write(p)
	s.sent += int64(n)
	if err != nil {
		s.failed = err
	}
	return n, err
}

// pieces are what an artifact is passed on in: of eight times the size that io.Copy
// has, it takes a fraction of the processor's time.
var pieces = sync.Pool{New: func() any { return new([256 << 10]byte) }}

// ReadFrom implements io.ReaderFrom, for io.Copy.
func (s *stream) ReadFrom(r io.Reader) (int64, error) {
	piece := pieces.Get().(*[256 << 10]byte)
	defer pieces.Put(piece)
	return io.CopyBuffer(struct{ io.Writer }{s}, r, piece[:])
}
