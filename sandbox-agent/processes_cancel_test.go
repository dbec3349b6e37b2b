package main

import (
	"errors"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// TestCancelledProcess: it ends with all that it started and says so; one that
// has ended by itself, or was killed otherwise, stays as it is.
func TestCancelledProcess(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	before := time.Now()
	p := a.background(t, "sleep 1000 & echo $!; wait")
	a.until(t, p.ID, "\n")
	if p.Ended != nil || p.Cancelled {
		t.Errorf("while it runs: %+v", p)
	}
	killed := a.background(t, "sleep 1000")
	a.signal(t, killed.ID, "KILL")
	done := a.background(t, "exit 3")
	a.wait(t, done.ID)
	for _, c := range []struct {
		id        string
		cancelled bool
		code      int
	}{{p.ID, true, 137}, {p.ID, true, 137}, {killed.ID, false, 137}, {done.ID, false, 3}} {
		if err := a.client.CancelProcess(t.Context(), a.pod, c.id); err != nil {
			t.Fatal(err)
		}
		got := a.look(t, c.id)
		if got.Running || got.ExitCode == nil || *got.ExitCode != c.code || got.Cancelled != c.cancelled || got.Ended == nil || got.Ended.Before(before) {
			t.Errorf("want %+v, got %+v", c, got)
		}
	}
	if got := a.output(t, "pgrep -x sleep || echo none"); got != "none\n" {
		t.Errorf("what it started: %q", got)
	}
	if err := a.client.CancelProcess(t.Context(), a.pod, "unknown"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("an unknown one: %v", err)
	}
}
