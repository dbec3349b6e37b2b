package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// ErrNoArtifact is an artifact that is unknown, expired or gone with its pod.
var ErrNoArtifact = errors.New("artifact not found")

// ErrLarge is an artifact, or a part of one, that is too large to be read at once.
var ErrLarge = errors.New("artifact is too large to be read at once")

// Content is an artifact's bytes, or some of them, and what it was called at its
// export.
type Content struct {
	Name     string
	MIMEType string
	Data     []byte
}

// Admit waits until there is room for so many bytes. It is called once an
// artifact's size is known, and before it is read.
type Admit func(ctx context.Context, size int64) error

// bodyWait is how long a pod may take to send what room was made for. It may be
// hostile, and others wait for that room.
const bodyWait = time.Minute

// Read returns what span says of an artifact or log: at most limit bytes.
func (d *Dispatcher) Read(ctx context.Context, req session.Request, id string, span client.Span, limit int64, admit Admit) (*Content, error) {
	var content *Content
	_, err := d.call(ctx, req, never, func(ctx context.Context, rec *session.Record) (err error) {
		content, err = d.read(ctx, rec, id, span, limit, admit)
		return err
	})
	return content, err
}

func (d *Dispatcher) read(ctx context.Context, rec *session.Record, id string, span client.Span, limit int64, admit Admit) (*Content, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The budget is no bound here: a longer one is told apart from a bad answer,
	// and its body is not read.
	reading, err := d.agent.ReadArtifact(ctx, rec.Pod(), id, span, 1<<62)
	if err != nil {
		return nil, err
	}
	defer reading.Body.Close()
	if reading.Length > limit {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrLarge, reading.Length, limit)
	}
	if err := admit(ctx, reading.Length); err != nil {
		return nil, err
	}
	defer time.AfterFunc(bodyWait, func() { cancel(context.DeadlineExceeded) }).Stop()
	data := make([]byte, reading.Length)
	if _, err := io.ReadFull(reading.Body, data); err != nil {
		return nil, fmt.Errorf("read artifact: %w", errors.Join(err, context.Cause(ctx)))
	}
	return &Content{Name: reading.Name, MIMEType: reading.MIMEType, Data: data}, nil
}
