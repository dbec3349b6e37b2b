package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// TestTermDrains: a running command finishes, new ones are refused, exit 0.
func TestTermDrains(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	release, result := a.hold(t, "")
	a.terminate(t)
	for {
		h, err := a.client.Health(t.Context(), a.pod)
		if err != nil {
			t.Fatal(err)
		}
		if h.Status == client.StatusDraining {
			break
		}
	}
	if _, err := a.client.Exec(t.Context(), a.pod, client.ExecRequest{Command: "true"}, 0); !errors.Is(err, client.ErrDraining) {
		t.Errorf("want ErrDraining, got %v", err)
	}
	release()
	if r := <-result; r.Stdout != "released\n" || r.ExitCode != 0 {
		t.Errorf("want the running command's result, got %+v", r)
	}
	if err := <-a.exited; err != nil {
		t.Errorf("want exit 0, got %v\n%s", err, a.log)
	}
}

func TestTermEndsWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	_, result := a.hold(t, "")
	began := time.Now()
	a.terminate(t)
	if r := <-result; r.ExitCode != 137 || !strings.Contains(r.Notice, "shutting down") {
		t.Errorf("want the command cancelled after the drain, and why, got %+v", r)
	}
	if err := <-a.exited; err != nil || time.Since(began) > 10*time.Second {
		t.Errorf("want exit 0 within the grace, got %v after %v\n%s", err, time.Since(began), a.log)
	}
}
