package detached

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/sandbox-agent/wire"
	"github.com/berth-dev/berth/test/clock"
)

func fixture(t testing.TB) (*Store, *clock.Clock) {
	t.Helper()
	c := clock.New()
	return New([]string{t.TempDir()}, c), c
}

func add(t testing.TB, s *Store, id string) *Command {
	t.Helper()
	c, err := s.Add(id, time.Unix(1_700_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// get returns how a command is now, its result read.
func get(t testing.TB, s *Store, id string) wire.ExecState {
	t.Helper()
	state, err := s.Wait(t.Context(), id, 0)
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	if state.Size() > 0 {
		b, err := io.ReadAll(state.Result())
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &state.ExecState.Result); err != nil {
			t.Fatal(err)
		}
	}
	return state.ExecState
}

func TestACommandRunsAndThenHasAResult(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"in memory": 10, "in a file": inMemory + 1} {
		s, now := fixture(t)
		c := add(t, s, "a")
		sent := time.Unix(1_700_000_000, 0).UTC()
		if diff := cmp.Diff(wire.ExecState{ID: "a", Running: true, Sent: sent}, get(t, s, "a")); diff != "" {
			t.Errorf("%s: while it runs (-want +got):\n%s", name, diff)
		}
		result := wire.ExecResult{Stdout: strings.Repeat("<", size), ExitCode: 3}
		s.Keep(c, result, false)
		end := now.Time.UTC()
		now.Advance(time.Minute)
		want := wire.ExecState{ID: "a", Sent: sent, Ended: &end, ExpiresIn: wire.DetachedLifetimeSeconds - 60, Result: &result}
		for range 2 { // it can be read again
			if diff := cmp.Diff(want, get(t, s, "a")); diff != "" {
				t.Errorf("%s: once it has ended (-want +got):\n%s", name, diff)
			}
		}
	}
}

func TestACommandThatDidNotRunSaysWhy(t *testing.T) {
	t.Parallel()
	s, _ := fixture(t)
	why := wire.ErrorDetail{Code: wire.CodeDraining, Message: "no"}
	s.Refuse(add(t, s, "a"), why)
	if got := get(t, s, "a"); got.Error == nil || *got.Error != why || got.Running || got.Result != nil {
		t.Errorf("got %+v", got)
	}
}

func TestOnlyACommandThatWasKilledForItWasCancelled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ asked, killed, want bool }{
		"killed":           {true, true, true},
		"ended before":     {true, false, false},
		"killed otherwise": {false, true, false},
	} {
		s, _ := fixture(t)
		command := add(t, s, "a")
		if c.asked && !s.Cancelling("a") {
			t.Errorf("%s: not there", name)
		}
		s.Keep(command, wire.ExecResult{ExitCode: 137}, c.killed)
		if !s.Cancelling("a") { // changes nothing any more
			t.Errorf("%s: not there once it has ended", name)
		}
		if got := get(t, s, "a").Cancelled; got != c.want {
			t.Errorf("%s: cancelled %v", name, got)
		}
	}
	if s, _ := fixture(t); s.Cancelling("a") {
		t.Error("an unknown one is there")
	}
}

func TestAnIDIsOneCommands(t *testing.T) {
	t.Parallel()
	s, _ := fixture(t)
	c := add(t, s, "a")
	if _, err := s.Add("a", time.Now()); !errors.Is(err, ErrIDInUse) || !s.Has("a") || s.Has("b") {
		t.Errorf("while it runs: %v", err)
	}
	s.Keep(c, wire.ExecResult{}, false)
	if _, err := s.Add("a", time.Now()); !errors.Is(err, ErrIDInUse) || !s.Has("a") {
		t.Errorf("once it has ended: %v", err)
	}
}

// TestResultsAreForgottenInTime: at their hour, and not a moment before.
func TestResultsAreForgottenInTime(t *testing.T) {
	t.Parallel()
	s, now := fixture(t)
	s.Keep(add(t, s, "a"), wire.ExecResult{}, false)
	now.Advance(time.Second)
	s.Keep(add(t, s, "b"), wire.ExecResult{Stdout: strings.Repeat("x", inMemory)}, false)
	add(t, s, "runs")
	now.Advance(Lifetime - time.Second - 1)
	if !s.Has("a") || !s.Has("b") {
		t.Fatal("forgotten early")
	}
	now.Advance(1)
	if _, err := s.Wait(t.Context(), "a", 0); !errors.Is(err, ErrNotFound) || !s.Has("b") {
		t.Errorf("at a's hour: %v", err)
	}
	now.Advance(time.Second)
	if s.Has("b") || !s.Has("runs") || s.used != 0 || now.Waiting() != 0 {
		t.Errorf("at b's hour: used %d, %d timers", s.used, now.Waiting())
	}
}

func TestTheOldestResultMakesRoom(t *testing.T) {
	t.Parallel()
	s, now := fixture(t)
	running := add(t, s, "runs")
	for i := range wire.MaxDetachedResults {
		s.Keep(add(t, s, fmt.Sprint(i)), wire.ExecResult{}, false)
	}
	if !s.Has("0") {
		t.Fatal("one made room for none")
	}
	s.Keep(running, wire.ExecResult{}, false)
	if s.Has("0") || !s.Has("1") || !s.Has("runs") || now.Waiting() != 1 {
		t.Error("not the oldest alone made room")
	}
}

func TestResultsAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	s, _ := fixture(t)
	empty := int64(len(wire.Encode(wire.ExecResult{})))
	part := wire.DetachedResultBytes/8 - empty
	for i := range 8 {
		s.Keep(add(t, s, fmt.Sprint(i)), wire.ExecResult{Stdout: strings.Repeat("x", int(part))}, false)
	}
	if s.used != wire.DetachedResultBytes || !s.Has("0") {
		t.Fatalf("at the limit: %d bytes", s.used)
	}
	s.Keep(add(t, s, "more"), wire.ExecResult{}, false)
	if s.Has("0") || !s.Has("1") || s.used > wire.DetachedResultBytes {
		t.Errorf("beyond the limit: %d bytes", s.used)
	}
}

// TestHowACommandEndedIsKeptWithoutADisk: its output is not, which it says.
func TestHowACommandEndedIsKeptWithoutADisk(t *testing.T) {
	t.Parallel()
	s := New([]string{t.TempDir() + "/missing"}, clock.New())
	s.Keep(add(t, s, "a"), wire.ExecResult{Stdout: strings.Repeat("x", inMemory), StdoutBytes: inMemory, ExitCode: 3, Notice: "Before."}, false)
	want := &wire.ExecResult{ExitCode: 3, Truncated: true, OmittedBytes: inMemory, StdoutBytes: inMemory, Notice: "Before. " + unkept}
	if diff := cmp.Diff(want, get(t, s, "a").Result); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWaiting ends with the command, with its time, or with whoever waits.
func TestWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := fixture(t)
		c := add(t, s, "a")
		began := time.Now()
		if state, err := s.Wait(t.Context(), "a", time.Second); err != nil || !state.Running || time.Since(began) != time.Second {
			t.Errorf("its time: %v after %v, %v", state.Running, time.Since(began), err)
		}
		time.AfterFunc(time.Minute, func() { s.Keep(c, wire.ExecResult{}, false) })
		began = time.Now()
		if state, err := s.Wait(t.Context(), "a", time.Hour); err != nil || state.Running || time.Since(began) != time.Minute {
			t.Errorf("its end: running %v after %v, %v", state.Running, time.Since(began), err)
		}
		add(t, s, "b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Wait(ctx, "b", time.Hour); !errors.Is(err, ctx.Err()) || err == nil {
			t.Errorf("whoever waits is gone: %v", err)
		}
	})
}
