//go:build linux

package standalone

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/session"
)

var key = session.Key{Namespace: "sandboxes", Name: "s"}

// silent has an agent that runs and never answers.
func silent(t *testing.T) (s *Sessions, tmp string) {
	t.Helper()
	tmp = t.TempDir()
	agent := filepath.Join(tmp, program)
	if err := os.WriteFile(agent, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	s, err := New(Options{
		Agent: agent, Max: 2, ReadyTimeout: time.Minute, Records: session.NewStore(),
		Observe: func(string, string, time.Duration) {}, Log: slog.New(slog.DiscardHandler), Out: io.Discard,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, tmp
}

// end ends what s has, and holds that nothing is left.
func end(t *testing.T, s *Sessions, tmp string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Run(ctx)
	if got := names(t, tmp); len(got) != 1 {
		t.Errorf("left %v, want the agent alone", got)
	}
	_, err := s.Resolve(t.Context(), session.Request{Key: key, Caller: &authn.Caller{Anonymous: true}, Mode: session.FindOrCreate})
	if !errors.Is(err, errClosed) {
		t.Errorf("a call afterwards: %v", err)
	}
}

func TestSilentAgentFailsTheStart(t *testing.T) {
	s, tmp := silent(t)
	s.startTimeout = 50 * time.Millisecond
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "the agent did not answer within 50ms") {
		t.Errorf("error %v", err)
	}
	end(t, s, tmp)
}

// A call waits for a silent agent no longer than for any session, or than its
// caller does; the session can be ended nevertheless, and never was ready.
func TestSilentAgentIsNotWaitedFor(t *testing.T) {
	s, tmp := silent(t)
	s.startTimeout = 500 * time.Millisecond
	var err error
	if s.folder, err = makeFolder(s.options.Log); err != nil {
		t.Fatal(err)
	}
	s.launcher = newLauncher()
	caller := &authn.Caller{Anonymous: true}
	req := session.Request{Key: key, Caller: caller, Mode: session.FindOrCreate}

	s.options.ReadyTimeout = 20 * time.Millisecond
	var notReady *session.NotReadyError
	if _, err := s.Resolve(t.Context(), req); !errors.As(err, &notReady) || notReady.Reason != reasonStarting {
		t.Errorf("after --ready-timeout: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Resolve(gone, req); !errors.Is(err, context.Canceled) {
		t.Errorf("for a caller that has gone: %v", err)
	}
	s.options.ReadyTimeout = time.Minute
	if _, err := s.Resolve(t.Context(), session.Request{Key: session.Key{Namespace: "sandboxes", Name: "other"}, Caller: caller, Mode: session.FindOrCreate}); !errors.As(err, &notReady) || notReady.Reason != reasonStartError {
		t.Errorf("after the agent was given up: %v", err)
	}
	for _, mode := range []session.Mode{session.Find, session.Known} {
		missing := session.Request{Key: session.Key{Namespace: "sandboxes", Name: "missing"}, Caller: caller, Mode: mode}
		if _, err := s.Resolve(t.Context(), missing); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("one that is not there, mode %d: %v", mode, err)
		}
	}
	if err := s.End(t.Context(), key, caller); err != nil {
		t.Error(err)
	}
	if _, ok := s.options.Records.Get(key); ok {
		t.Error("a session that never was ready has a record")
	}
	end(t, s, tmp)
}
