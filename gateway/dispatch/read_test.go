package dispatch

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// reader is an agent with one artifact, of which half comes.
type reader struct {
	Agent
	refuses error
	binds   int
	closed  bool
}

func (r *reader) Bind(context.Context, client.Pod, client.Session) error { r.binds++; return nil }

func (r *reader) ReadArtifact(ctx context.Context, _ client.Pod, id string, span client.Span, _ int64) (*client.Reading, error) {
	if r.refuses != nil {
		return nil, r.refuses
	}
	return &client.Reading{
		Artifact: client.Artifact{ID: id, Name: "f", MIMEType: "text/plain", Size: 8, SHA256: "00", ExpiresIn: 9},
		ETag:     `"e"`, Offset: span.Offset, Length: span.Length, Body: &half{ctx: ctx, of: r},
	}, nil
}

// half is a body that yields half and then waits for the end of its context.
type half struct {
	ctx  context.Context
	of   *reader
	sent bool
}

func (h *half) Read(p []byte) (int, error) {
	if !h.sent {
		h.sent = true
		return copy(p, "half"), nil
	}
	<-h.ctx.Done()
	return 0, h.ctx.Err()
}

func (h *half) Close() error { h.of.closed = true; return nil }

// R34: a reading outlasts the call that opened it. It ends with its session, with
// the session's pod and with its reader, and says so.
func TestReadingEnds(t *testing.T) {
	tests := map[string]struct {
		end   func(store *one, cancel context.CancelFunc)
		after time.Duration
		want  string
	}{
		"session deleted": {func(s *one, _ context.CancelFunc) { s.set(nil) }, 0, errEnded.Error()},
		"pod replaced": {func(s *one, _ context.CancelFunc) {
			next := *s.rec
			next.PodUID = "p2"
			s.set(&next)
		}, replacedGrace, errReplaced.Error()},
		"reader gone": {func(_ *one, cancel context.CancelFunc) { cancel() }, 0, "the call was cancelled"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, agent := newOne(), &reader{}
				d := New(agent, store, store, nil, slog.New(slog.DiscardHandler), func(string) {})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				reading, err := d.Open(ctx, nil, artifact.Handle{ID: "id"}, artifact.Part{Offset: 0, Length: 8})
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				time.AfterFunc(time.Minute, func() { tc.end(store, cancel) })
				got, err := io.ReadAll(reading.Body)
				if took := time.Since(start); string(got) != "half" || err == nil || !strings.HasPrefix(err.Error(), tc.want) || took != time.Minute+tc.after {
					t.Errorf("%q, error %v after %s; want half, %q after %s", got, err, took, tc.want, time.Minute+tc.after)
				}
				if err := reading.Body.Close(); err != nil || !agent.closed {
					t.Errorf("error %v, agent's body closed: %v", err, agent.closed)
				}
				if n := len(store.changed); n != 0 {
					t.Errorf("%d watches left", n)
				}
			})
		})
	}
}

func TestReadingSaysWhatTheAgentSays(t *testing.T) {
	t.Parallel()
	store := newOne()
	d := New(&reader{}, store, store, nil, slog.New(slog.DiscardHandler), func(string) {})
	got, err := d.Open(t.Context(), nil, artifact.Handle{ID: "id"}, artifact.Part{Offset: 1, Length: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	got.Body = nil
	want := &artifact.Reading{Name: "f", MIMEType: "text/plain", Size: 8, SHA256: "00", ETag: `"e"`, ExpiresIn: 9, Offset: 1, Length: 2}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reading (-want +got):\n%s", diff)
	}
}

// What can't be opened leaves no watch, and an agent that begins anew is not
// bound by a reader: it has nothing, and whoever does something next is to be told
// what was lost.
func TestNothingToRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ refuses, want error }{
		"unknown":      {&client.Error{Status: 404, Code: "not_found"}, artifact.ErrNotFound},
		"malformed id": {client.ErrNotFound, artifact.ErrNotFound},
		"fresh agent":  {&client.Error{Status: 409, Code: "session_required"}, artifact.ErrNotFound},
		"beyond":       {&client.Error{Status: 416, Code: "unknown"}, artifact.ErrRange},
		"part of none": {client.ErrRange, artifact.ErrRange},
	} {
		store, agent := newOne(), &reader{refuses: tc.refuses}
		d := New(agent, store, store, nil, slog.New(slog.DiscardHandler), func(string) {})
		_, err := d.Open(t.Context(), nil, artifact.Handle{ID: "id"}, artifact.Part{})
		if !errors.Is(err, tc.want) || agent.binds != 0 || len(store.changed) != 0 {
			t.Errorf("%s: error %v, %d binds, %d watches left; want %v", name, err, agent.binds, len(store.changed), tc.want)
		}
	}
}
