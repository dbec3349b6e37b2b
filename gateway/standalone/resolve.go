package standalone

import (
	"context"
	"errors"
	"fmt"
	"time"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/session"
)

// errEnded is a session that was ended while it was waited for.
var errEnded = errors.New("the session was ended")

// errClosed is a gateway that starts nothing any more.
var errClosed = errors.New("the gateway is shutting down")

// Resolve implements dispatch.Sessions, with the errors of session.Resolver. What
// it doesn't find running is started: a session, or the agent of one whose agent
// has ended.
func (s *Sessions) Resolve(ctx context.Context, req session.Request) (rec *session.Record, err error) {
	state, start := "warm", time.Now()
	defer func() { s.options.Observe(state, resultOf(ctx, err), time.Since(start)) }()
	if err := admit(req); err != nil {
		return nil, err
	}
	if rec, ok := s.options.Records.Get(req.Key); ok && rec.Ready && rec.PodUID != req.NotPod {
		if !req.Caller.Owns(rec.Owner) {
			return nil, session.ErrNotAvailable
		}
		return rec, nil
	}
	state = "cold"
	return s.wait(ctx, req)
}

// admit refuses a template by name: there is only what is so without one.
func admit(req session.Request) error {
	if req.Template == "" || req.Template == berthv1alpha1.DefaultTemplateName {
		return nil
	}
	return &session.NotReadyError{Key: req.Key, Reason: berthv1alpha1.ReasonTemplateNotFound, Message: fmt.Sprintf(
		"without a cluster there is no template %q: leave the %s header out", req.Template, session.TemplateHeader)}
}

func resultOf(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return "ready"
	case ctx.Err() != nil:
		return "cancelled"
	default:
		return "failed"
	}
}

func (s *Sessions) wait(ctx context.Context, req session.Request) (*session.Record, error) {
	limited, cancel := context.WithTimeout(ctx, s.options.ReadyTimeout)
	defer cancel()
	for {
		rec, err := s.try(limited, req)
		switch {
		case errors.Is(err, errEnded):
			continue // it may be made anew
		case err != nil && limited.Err() != nil && ctx.Err() == nil:
			return nil, &session.NotReadyError{Key: req.Key, Reason: reasonStarting, Message: "its agent has not answered yet", Waited: s.options.ReadyTimeout}
		}
		return rec, err
	}
}

// try is errEnded if the session that there was is gone by now.
func (s *Sessions) try(ctx context.Context, req session.Request) (*session.Record, error) {
	b, ending, err := s.get(req)
	if err != nil {
		return nil, err
	}
	if !ending {
		return b.ready(ctx, req.NotPod)
	}
	select {
	case <-b.gone:
		return nil, errEnded
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// get returns a session, made if there is none and one is wanted, and whether it
// is being ended.
func (s *Sessions) get(req session.Request) (b *sandbox, ending bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.all[req.Key]
	switch {
	case s.closed:
		return nil, false, errClosed
	case ok && !req.Caller.Owns(b.owner):
		return nil, false, session.ErrNotAvailable
	case ok && b.ending && req.Mode == session.Known:
		return nil, false, session.ErrNotFound
	case ok:
		return b, b.ending, nil
	case req.Mode != session.FindOrCreate:
		return nil, false, session.ErrNotFound
	case len(s.all) >= s.options.Max:
		return nil, false, s.shortage(req.Key)
	}
	b = s.newSandbox(req.Key, req.Caller.Owner())
	s.all[req.Key] = b
	return b, false, nil
}

// End implements front.Ender: it ends a session that is the caller's, and returns
// when it and its workspace are gone. One that is not there, or another's, is left
// alone without an error.
func (s *Sessions) End(ctx context.Context, key session.Key, caller *authn.Caller) error {
	s.mu.Lock()
	b, ok := s.all[key]
	if !ok || !caller.Owns(b.owner) {
		s.mu.Unlock()
		return nil
	}
	s.endLocked(b)
	s.mu.Unlock()
	select {
	case <-b.gone:
		return nil
	case <-ctx.Done():
		return ctx.Err() // it ends nevertheless
	}
}

// endLocked begins to end a session, once.
func (s *Sessions) endLocked(b *sandbox) {
	if b.ending {
		return
	}
	b.ending = true
	s.options.Records.Drop(b.key) // calls under way end with that
	s.work.Go(func() {
		if err := b.end(); err != nil {
			s.options.Log.Warn("Session's files could not be removed; the end of the gateway tries again", "session", b.key.Name, "error", err)
		}
		s.forget(b)
	})
}

// forget makes room for another session.
func (s *Sessions) forget(b *sandbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[b.key] == b {
		delete(s.all, b.key)
	}
	close(b.gone)
}
