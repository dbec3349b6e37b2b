package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// detach sends a command that doesn't end before it is detached.
func (a *agent) detach(t *testing.T, id, command string) {
	t.Helper()
	result, state, err := a.client.ExecDetachable(t.Context(), a.pod, client.ExecRequest{Command: command, ID: id, DetachAfter: 0.01})
	if err != nil || result != nil || state == nil || !state.Running {
		t.Fatalf("detach: result %+v, state %+v, %v", result, state, err)
	}
}

func (a *agent) state(t *testing.T, id string, wait time.Duration) *client.ExecState {
	t.Helper()
	state, err := a.client.ExecState(t.Context(), a.pod, id, wait)
	if err != nil {
		t.Fatalf("state of %s: %v", id, err)
	}
	return state
}

// TestDetachedCommand: it goes on when its call is answered, what it changes in
// the shell stays, and its result is that of a call, from any connection.
func TestDetachedCommand(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, "mkfifo go")
	a.detach(t, "a", `read < go; x=kept; printf 'é\xff<'; echo err >&2; (exit 3)`)
	if s := a.state(t, "a", 0); !s.Running {
		t.Fatalf("state %+v, want it to run", s)
	}
	a.fifo(t, "go", true)
	s := a.state(t, "a", client.MaxExecWait*time.Second)
	want := &client.ExecResult{Stdout: "é\ufffd<", Stderr: "err\n", ExitCode: 3, StdoutBytes: 4, StderrBytes: 4}
	if s.Result != nil {
		want.DurationMS = s.Result.DurationMS
	}
	if diff := cmp.Diff(want, s.Result); diff != "" || s.Cancelled {
		t.Errorf("cancelled %v, result (-want +got):\n%s", s.Cancelled, diff)
	}
	if got := a.output(t, "echo $x"); got != "kept\n" {
		t.Errorf("the shell after it: %q", got)
	}
}

// TestDetachedCommandsOutputIsWhole: its result, from a file, and its log.
func TestDetachedCommandsOutputIsWhole(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, "mkfifo go")
	a.detach(t, "a", "read < go; seq 200000")
	a.fifo(t, "go", true)
	s := a.state(t, "a", client.MaxExecWait*time.Second)
	if s.Result == nil || !s.Result.Truncated || len(s.Result.Stdout) < client.DefaultOutputBytes-1024 || s.Result.Log == nil {
		t.Fatalf("state %.300v", s)
	}
	if whole := a.logged(t, s.Result.Log.Stdout); strings.Count(whole, "\n") != 200000 {
		t.Errorf("the log has %d lines", strings.Count(whole, "\n"))
	}
}

// TestDetachedCommandIsCancelled with all that it started; the shell's state lives.
func TestDetachedCommandIsCancelled(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, "x=kept; mkfifo began")
	a.detach(t, "a", "sleep 1000 & echo $! > pid; echo > began; wait")
	a.fifo(t, "began", false)
	if err := a.client.CancelExec(t.Context(), a.pod, "a"); err != nil {
		t.Fatal(err)
	}
	if s := a.state(t, "a", client.MaxExecWait*time.Second); !s.Cancelled || s.Result == nil || s.Result.ExitCode != 137 {
		t.Errorf("state %+v", s)
	}
	if got := a.output(t, "echo $x; ! kill -0 $(cat pid) 2>/dev/null && echo dead"); got != "kept\ndead\n" {
		t.Errorf("after it: %q", got)
	}
	if _, err := a.client.ExecState(t.Context(), a.pod, "b", 0); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("an unknown one: %v", err)
	}
}

// TestAttachedCommandEndsWithItsCaller: it would be nobody's otherwise.
func TestAttachedCommandEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, "mkfifo began")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, _, err := a.client.ExecDetachable(ctx, a.pod, client.ExecRequest{Command: "echo > began; sleep 1000; touch over", ID: "a", DetachAfter: 500})
		done <- err
	}()
	a.fifo(t, "began", false)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := a.output(t, "ls over 2>/dev/null; echo free"); got != "free\n" {
		t.Errorf("after it: %q", got)
	}
	if _, err := a.client.ExecState(t.Context(), a.pod, "a", 0); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("it was detached: %v", err)
	}
}
