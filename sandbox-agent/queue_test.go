package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// pending is a command whose result has not come yet.
type pending struct {
	result *client.ExecResult
	err    error
	done   chan struct{}
}

// begin sends a command and waits for nothing.
func (a *agent) begin(ctx context.Context, r client.ExecRequest) *pending {
	p := &pending{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.result, p.err = a.client.Exec(ctx, a.pod, r, 0)
	}()
	return p
}

// submit sends a command and returns when it waits as the nth of the queue.
func (a *agent) submit(ctx context.Context, t *testing.T, nth int, r client.ExecRequest) *pending {
	t.Helper()
	p := a.begin(ctx, r)
	a.awaitQueued(t, nth)
	return p
}

// awaitQueued asks until so many commands wait.
func (a *agent) awaitQueued(t *testing.T, want int) {
	t.Helper()
	for {
		activity, err := a.client.Activity(t.Context(), a.pod)
		if err != nil {
			t.Fatalf("activity: %v\n%s", err, a.log)
		}
		if activity.Queued == want {
			return
		}
	}
}

func isFull(err error) bool {
	var refusal *client.Error
	return errors.Is(err, client.ErrQueueFull) && errors.As(err, &refusal) && refusal.Status == http.StatusTooManyRequests && refusal.RetryAfter > 0
}

// TestQueueKeepsTheOrderOfArrival, for as many as may wait. One more is refused,
// one fewer leaves a place.
func TestQueueKeepsTheOrderOfArrival(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	release, held := a.hold(t, "")
	var all []*pending
	want := ""
	for i := range 63 {
		all = append(all, a.submit(t.Context(), t, i+1, client.ExecRequest{Command: fmt.Sprintf("echo %d >> order", i)}))
		want += fmt.Sprintln(i)
	}
	all = append(all, a.submit(t.Context(), t, 64, client.ExecRequest{Command: "echo 63 >> order"})) // one below: a place is left
	want += "63\n"
	for range 2 {
		if _, err := a.client.Exec(t.Context(), a.pod, client.ExecRequest{Command: "echo refused >> order"}, 0); !isFull(err) {
			t.Errorf("the 65th: want 429 with Retry-After, got %v", err)
		}
	}
	release()
	<-held
	for _, p := range all {
		<-p.done
		if p.err != nil || p.result.ExitCode != 0 {
			t.Errorf("queued command: %+v, %v", p.result, p.err)
		}
	}
	if diff := cmp.Diff(want, a.output(t, "cat order")); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// TestPlaceOfACancelledCommandIsFreeAtOnce, whether it was cancelled by its id
// or its caller is gone; and it never runs.
func TestPlaceOfACancelledCommandIsFreeAtOnce(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	release, held := a.hold(t, "")
	gone, leave := context.WithCancel(t.Context())
	defer leave()
	var all []*pending
	for i := range 62 {
		all = append(all, a.submit(t.Context(), t, i+1, client.ExecRequest{Command: "echo >> ran"}))
	}
	abandoned := a.submit(gone, t, 63, client.ExecRequest{Command: "touch wrong"})
	cancelled := a.submit(t.Context(), t, 64, client.ExecRequest{Command: "touch wrong", ID: "last"})
	for _, giveUp := range []func(){
		func() {
			if err := a.client.CancelExec(t.Context(), a.pod, "last"); err != nil {
				t.Error(err)
			}
			<-cancelled.done
			if r := cancelled.result; r == nil || r.ExitCode != 137 || r.TimedOut || !strings.Contains(r.Notice, "nothing ran") {
				t.Errorf("want a result that says that nothing ran, got %+v, %v", r, cancelled.err)
			}
		},
		func() {
			leave()
			<-abandoned.done
			a.awaitQueued(t, 63)
		},
	} {
		giveUp()
		all = append(all, a.submit(t.Context(), t, 64, client.ExecRequest{Command: "echo >> ran"}))
		if _, err := a.client.Exec(t.Context(), a.pod, client.ExecRequest{Command: "touch wrong"}, 0); !isFull(err) {
			t.Errorf("want one place, got %v", err)
		}
	}
	release()
	<-held
	for _, p := range all {
		<-p.done
	}
	if got, want := a.output(t, "wc -l < ran; ls"), "64\ngo\nheld\nran\n"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}

func TestIDOfAQueuedCommandIsTaken(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	release, held := a.hold(t, "")
	queued := a.submit(t.Context(), t, 1, client.ExecRequest{Command: "echo queued", ID: "same"})
	resp, body := a.raw(t, http.MethodPost, "/v1/exec", "application/json", `{"command":"touch wrong","id":"same"}`)
	if resp.StatusCode != http.StatusBadRequest || errorCode(t, body) != "id_in_use" {
		t.Errorf("want 400 id_in_use, got %d %s", resp.StatusCode, body)
	}
	a.awaitQueued(t, 1) // the refused one took no place
	if err := a.client.CancelExec(t.Context(), a.pod, "same"); err != nil {
		t.Fatal(err)
	}
	<-queued.done
	again := a.submit(t.Context(), t, 1, client.ExecRequest{Command: "echo again", ID: "same"})
	release()
	<-held
	if <-again.done; again.err != nil || again.result.Stdout != "again\n" {
		t.Errorf("the id was not free again: %+v, %v", again.result, again.err)
	}
}

// TestQueuedLongerThanItsTimeOut: the clock starts with the command, which
// then has its whole time.
func TestQueuedLongerThanItsTimeOut(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, "mkfifo held")
	first := a.begin(t.Context(), client.ExecRequest{Command: "echo > held; sleep 1.5"})
	a.fifo(t, "held", false)
	second := a.submit(t.Context(), t, 1, client.ExecRequest{Command: "sleep 0.2; echo whole", Timeout: 1})
	third := a.submit(t.Context(), t, 2, client.ExecRequest{Command: "sleep 9", Timeout: 0.2})
	<-first.done
	if <-second.done; second.err != nil || second.result.TimedOut || second.result.Stdout != "whole\n" || second.result.DurationMS >= 1000 {
		t.Errorf("want it to have its whole time, got %+v, %v", second.result, second.err)
	}
	if <-third.done; third.err != nil || !third.result.TimedOut || third.result.DurationMS < 200 {
		t.Errorf("want a time-out of its own, got %+v, %v", third.result, third.err)
	}
}

// TestStreamOfACancelledCommand: whoever follows one gets its result, queued
// or running.
func TestStreamOfACancelledCommand(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	_, held := a.hold(t, "first")
	queued := make(chan *client.ExecResult, 1)
	go func() {
		r, err := a.client.ExecStream(t.Context(), a.pod, client.ExecRequest{Command: "touch wrong", ID: "queued"}, 0, func(byte, []byte) error { return nil })
		if err != nil {
			t.Error(err)
		}
		queued <- r
	}()
	a.awaitQueued(t, 1)
	for _, id := range []string{"queued", "first"} {
		if err := a.client.CancelExec(t.Context(), a.pod, id); err != nil {
			t.Error(err)
		}
	}
	if r := <-queued; r == nil || r.ExitCode != 137 || !strings.Contains(r.Notice, "nothing ran") {
		t.Errorf("want a result that says that nothing ran, got %+v", r)
	}
	<-held
	r, err := a.client.ExecStream(t.Context(), a.pod, client.ExecRequest{Command: "echo begun; setsid sleep 777 & sleep 777", ID: "running"}, 0, func(byte, []byte) error {
		return a.client.CancelExec(t.Context(), a.pod, "running")
	})
	if err != nil || r.ExitCode != 137 || r.TimedOut || r.Stdout != "begun\n" {
		t.Errorf("want the partial output of a cancelled command, got %+v, %v", r, err)
	}
	if got := a.output(t, "pgrep -xc sleep; ls"); got != "0\ngo\nheld\n" {
		t.Errorf("left behind: %q", got)
	}
}

// TestFollowerGoneIsCancel: of a stream, once output has come.
func TestFollowerGoneIsCancel(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	ctx, leave := context.WithCancel(t.Context())
	_, err := a.client.ExecStream(ctx, a.pod, client.ExecRequest{Command: "echo begun; setsid sleep 777 & sleep 777"}, 0, func(byte, []byte) error { leave(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("want the caller's own cancel, got %v", err)
	}
	if got := a.output(t, "pgrep -xc sleep || :"); got != "0\n" {
		t.Errorf("processes of a follower that is gone: %q", got)
	}
}
