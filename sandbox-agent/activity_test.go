package main

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// R5: a session with a command in flight is not idle, one that was found idle
// takes no more calls, and says so however it is asked.
func TestQuiesce(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	release, result := a.hold(t, "")
	busy, err := a.client.Quiesce(t.Context(), a.pod, 0)
	if err != nil || busy.Quiesced || busy.Running != 1 || busy.IdleMS != 0 {
		t.Errorf("while a command ran: %+v, %v", busy, err)
	}
	release()
	<-result
	if idle, err := a.client.Quiesce(t.Context(), a.pod, time.Hour); err != nil || idle.Quiesced || idle.IdleMS > time.Minute.Milliseconds() {
		t.Errorf("idle, but not for an hour: %+v, %v", idle, err)
	}
	for range 2 {
		if idle, err := a.client.Quiesce(t.Context(), a.pod, 0); err != nil || !idle.Quiesced {
			t.Errorf("idle: %+v, %v", idle, err)
		}
	}
	a.refusesAll(t)
	if h, err := a.client.Health(t.Context(), a.pod); err != nil || h.Status != client.StatusOK {
		t.Errorf("health: %+v, %v", h, err)
	}
	if got, err := a.client.Activity(t.Context(), a.pod); err != nil || !got.Quiesced {
		t.Errorf("activity: %+v, %v", got, err)
	}
	a.terminate(t)
	if err := <-a.exited; err != nil {
		t.Errorf("a quiesced agent ended with %v\n%s", err, a.log)
	}
}

// refusesAll checks that a quiesced agent takes no call.
func (a *agent) refusesAll(t *testing.T) {
	t.Helper()
	for name, call := range map[string]func() error{
		"exec": func() error {
			_, err := a.client.Exec(t.Context(), a.pod, client.ExecRequest{Command: "touch ran"}, 0)
			return err
		},
		"bind":   func() error { return a.client.Bind(t.Context(), a.pod, client.Session{UID: "sandbox-1"}) },
		"cancel": func() error { return a.client.CancelExec(t.Context(), a.pod, "x") },
		"export": func() error {
			_, err := a.client.Export(t.Context(), a.pod, client.ExportRequest{Path: "x"})
			return err
		},
	} {
		err := call()
		var refusal *client.Error
		if !errors.Is(err, client.ErrGone) || !errors.As(err, &refusal) || refusal.Status != http.StatusGone || refusal.Code != "quiesced" {
			t.Errorf("%s: want 410 quiesced, got %v", name, err)
		}
	}
}

// Background processes, and what a command leaves running, are activity where the
// session says so.
func TestBackgroundIsActivityWhereTheSessionSaysSo(t *testing.T) {
	t.Parallel()
	for _, counts := range []bool{false, true} {
		a := newAgent(t, agentOptions{})
		session := client.Session{UID: "sandbox-1", BackgroundIsActivity: counts}
		if err := a.client.Bind(t.Context(), a.pod, session); err != nil {
			t.Fatal(err)
		}
		p, err := a.client.StartProcess(t.Context(), a.pod, client.ProcessRequest{Command: "sleep 777"})
		if err != nil {
			t.Fatal(err)
		}
		a.output(t, "sleep 888 &")
		if _, err := a.client.Processes(t.Context(), a.pod); err != nil { // knows of the job from then on
			t.Fatal(err)
		}
		got, err := a.client.Quiesce(t.Context(), a.pod, 0)
		if err != nil || got.Processes != 2 || got.Quiesced == counts || counts && got.IdleMS != 0 {
			t.Errorf("counts %v: with two that run: %+v, %v", counts, got, err)
		}
		if !counts {
			continue
		}
		if err := a.client.SignalProcess(t.Context(), a.pod, p.ID, "KILL"); err != nil {
			t.Fatal(err)
		}
		for running := true; running; { // a long poll is activity too
			o, err := a.client.ProcessOutput(t.Context(), a.pod, p.ID, client.OutputQuery{Wait: 10 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			running = o.Running
		}
		a.output(t, "kill $!; wait")
		if _, err := a.client.Processes(t.Context(), a.pod); err != nil {
			t.Fatal(err)
		}
		if got, err := a.client.Quiesce(t.Context(), a.pod, 0); err != nil || !got.Quiesced || got.Processes != 0 {
			t.Errorf("when both have ended: %+v, %v", got, err)
		}
	}
}
