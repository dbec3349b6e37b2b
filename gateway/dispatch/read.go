package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// Open implements artifact.Source: what a session's agent holds. The reading
// ends with ctx, and with the session or its pod.
func (d *Dispatcher) Open(ctx context.Context, caller *authn.Caller, handle artifact.Handle, part artifact.Part) (*artifact.Reading, error) {
	var reading *artifact.Reading
	req := session.Request{Key: handle.Key, Caller: caller, Mode: session.Known}
	_, err := d.call(ctx, req, never, func(_ context.Context, rec *session.Record) (err error) {
		reading, err = d.open(ctx, rec, handle.ID, part)
		return err
	})
	if errors.Is(err, session.ErrNotFound) || errors.Is(err, session.ErrNotAvailable) {
		return nil, fmt.Errorf("%w: %w", artifact.ErrNotFound, err)
	}
	return reading, err
}

// open asks for an artifact in a context of its own, which outlasts the call.
func (d *Dispatcher) open(ctx context.Context, rec *session.Record, id string, part artifact.Part) (*artifact.Reading, error) {
	scope, stop := d.follow(ctx, rec)
	// How much is read is its reader's to bound.
	r, err := d.agent.ReadArtifact(scope, rec.Pod(), id, client.Span(part), 1<<62)
	if err != nil {
		err = because(scope, err)
		stop()
		// An agent that begins anew has nothing to be read. It isn't told its session:
		// the first call that does something is to learn what was lost.
		if errors.Is(err, client.ErrSessionRequired) || errors.Is(err, client.ErrNotFound) {
			return nil, artifact.ErrNotFound
		}
		return nil, err
	}
	return &artifact.Reading{
		Name: r.Name, MIMEType: r.MIMEType, Size: r.Size, SHA256: r.SHA256, ETag: r.ETag, ExpiresIn: r.ExpiresIn,
		Offset: r.Offset, Length: r.Length,
		Body: &agentBody{d: d, ctx: ctx, scope: scope, rec: rec, body: r.Body, stop: stop},
	}, nil
}

// agentBody is an artifact's bytes on their way from an agent.
type agentBody struct {
	d          *Dispatcher
	ctx, scope context.Context // the reader's, and that of the session's pod
	rec        *session.Record
	body       io.ReadCloser
	stop       func()
}

// Read implements io.Reader. Its errors are explained, and so end a reading.
func (b *agentBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.d.explain(b.ctx, b.rec, because(b.scope, fmt.Errorf("read artifact: %w", err)))
	}
	return n, err
}

// Close implements io.Closer.
func (b *agentBody) Close() error {
	defer b.stop()
	return b.body.Close()
}
