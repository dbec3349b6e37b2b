package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/berth-dev/berth/gateway/artifactstore"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// Stores keep exports that outlive their session, by the name of a store.
type Stores interface {
	// Check tells, in words for the caller, why there is no such store.
	Check(name string) error
	// Put returns an error for the caller, or what reading the file returned.
	Put(ctx context.Context, name string, f *artifactstore.File) (artifactstore.Kept, error)
}

// dropWait bounds how long an export waits for its agent to forget the file. One
// that doesn't has it for 5 minutes.
const dropWait = 2 * time.Second

// keep exports a file into the session's artifact store. Its agent is asked for
// the digest, whatever the size: the store's object says so before its bytes
// come, and they are held against it.
func (d *Dispatcher) keep(ctx context.Context, rec *session.Record, request client.ExportRequest) (*Export, error) {
	if err := d.stores.Check(rec.ArtifactStore); err != nil {
		return nil, &AgentError{err.Error(), err}
	}
	request.Digest = true
	taken, err := d.agent.Export(ctx, rec.Pod(), request)
	if err != nil {
		return nil, err
	}
	defer d.drop(ctx, rec, taken.ID)
	if most := rec.Limits.ArtifactBytes; most > 0 && taken.Size > most {
		// A store keeps what its session's limit would have: not this agent's word.
		return nil, fmt.Errorf("%w: an export of %d bytes, at most %d", client.ErrBadAnswer, taken.Size, most)
	}
	kept, err := d.stores.Put(ctx, rec.ArtifactStore, &artifactstore.File{
		Session: rec.Key, Owner: rec.Owner,
		Name: taken.Name, MIMEType: taken.MIMEType, Size: taken.Size, SHA256: taken.SHA256,
		Open: func(ctx context.Context) (io.ReadCloser, error) { return d.openExport(ctx, rec, taken) },
	})
	var unread *readError
	switch {
	case err == nil:
		export := &Export{*taken, kept.Handle}
		export.ExpiresIn = kept.ExpiresIn
		return export, nil
	case ctx.Err() != nil || errors.As(err, &unread):
		return nil, err
	default:
		return nil, &AgentError{err.Error(), err}
	}
}

// readError is an export that its agent doesn't give.
type readError struct{ error }

func (e *readError) Unwrap() error { return e.error }

func (d *Dispatcher) openExport(ctx context.Context, rec *session.Record, taken *client.Artifact) (io.ReadCloser, error) {
	reading, err := d.agent.ReadArtifact(ctx, rec.Pod(), taken.ID, client.Span{}, taken.Size)
	if err != nil {
		return nil, &readError{err}
	}
	return exportBody{reading.Body}, nil
}

type exportBody struct{ io.ReadCloser }

func (b exportBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &readError{err}
	}
	return n, err
}

// drop makes the agent forget a file, whether its store has it or not, so that its
// slot is free.
func (d *Dispatcher) drop(ctx context.Context, rec *session.Record, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropWait)
	defer cancel()
	if err := d.agent.DropArtifact(ctx, rec.Pod(), id); err != nil && !errors.Is(err, client.ErrNotFound) {
		d.log.Info("Agent did not forget an export", "namespace", rec.Namespace, "session", rec.Name, "podUID", rec.PodUID, "error", err)
	}
}
