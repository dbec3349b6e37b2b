package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// plainSh makes a bash serve as a plain sh.
var plainSh = []string{"PATH=/usr/bin:/bin", "BASH_COMPAT=4.4"}

// A slow reader slows the command: neither agent nor pipes hold what it writes.
func TestSlowReaderSlowsTheCommand(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a.run(t, "true")
	before := a.memory(t)
	blocked := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		first := true
		_, err := a.client.ExecStream(ctx, a.pod, client.ExecRequest{Command: `i=0; while :; do head -c 1048576 /dev/zero; i=$((i+1)); echo $i >written; done`, NoLog: true}, 0, func(byte, []byte) error {
			if first {
				first = false
				close(blocked)
			}
			<-ctx.Done()
			return ctx.Err()
		})
		ended <- err
	}()
	<-blocked
	written := a.standsStill(t, "written")
	const most = 64 // MiB that sockets, pipes and chunks may hold
	if written > most {
		t.Errorf("the command wrote %d MiB to a reader that took none", written)
	}
	if grown := a.memory(t) - before; grown > 16<<20 {
		t.Errorf("the agent grew by %d bytes", grown)
	}
	if _, err := a.client.Health(t.Context(), a.pod); err != nil {
		t.Errorf("health: %v", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("want the call cancelled, got %v", err)
	}
	if got := a.output(t, "pgrep -xc head || true"); got != "0\n" { // its turn comes when that one was killed
		t.Errorf("processes of a reader that is gone: %q", got)
	}
}

// standsStill returns the number in a file of the workspace once it no longer
// changes.
func (a *agent) standsStill(t testing.TB, name string) (n int) {
	t.Helper()
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for last := -1; ; last = n {
		<-tick.C
		data, err := os.ReadFile(filepath.Join(a.workspace, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(string(data), &n); err == nil && n == last {
			return n
		}
		if t.Context().Err() != nil {
			return n
		}
	}
}

// A reader that takes nothing holds up neither the end of its command nor the
// next ones nor health; what was written reaches it when it goes on.
func TestStuckReader(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	release, result := make(chan struct{}), make(chan *client.ExecResult, 1)
	blocked := make(chan struct{})
	var got int64
	go func() {
		first := true
		r, err := a.client.ExecStream(t.Context(), a.pod, client.ExecRequest{Command: "echo $BASHPID >pid; exec yes", Timeout: 1, NoLog: true}, 0, func(_ byte, data []byte) error {
			if first {
				first = false
				close(blocked)
			}
			<-release
			got += int64(len(data))
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		result <- r
	}()
	<-blocked
	began := time.Now()
	if got := a.output(t, "kill -0 $(cat pid) 2>/dev/null && echo alive; echo next"); got != "next\n" {
		t.Errorf("the next command: %q", got)
	}
	if d := time.Since(began); d > 6*time.Second {
		t.Errorf("the command's time-out of 1 s held after %v", d)
	}
	close(release)
	if r := <-result; r == nil || !r.TimedOut || r.ExitCode != 137 || r.StdoutBytes != got {
		t.Errorf("%d bytes came, result %+v", got, r)
	}
}

// A reader that makes no progress for 30 s is gone.
func TestReaderThatStaysStuckIsGone(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, "mkfifo held")
	release := make(chan struct{})
	ended := make(chan error, 1)
	began := time.Now()
	go func() {
		_, err := a.client.ExecStream(t.Context(), a.pod, client.ExecRequest{Command: "echo >held; yes", Timeout: 300, NoLog: true}, 0, func(byte, []byte) error {
			<-release
			return nil
		})
		ended <- err
	}()
	a.fifo(t, "held", false)
	if got := a.output(t, "echo next"); got != "next\n" { // its turn comes when that one was cancelled
		t.Errorf("the next command: %q", got)
	}
	if d := time.Since(began); d < 25*time.Second || d > 50*time.Second {
		t.Errorf("the reader was given up after %v, want 30 s", d)
	}
	close(release)
	if err := <-ended; err == nil {
		t.Error("want the call to fail")
	}
}

// The agent's end waits for no reader.
func TestTermWithAStuckReader(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	release, blocked := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		var once sync.Once
		_, err := a.client.ExecStream(t.Context(), a.pod, client.ExecRequest{Command: "yes", NoLog: true}, 0, func(byte, []byte) error {
			once.Do(func() { close(blocked) })
			<-release
			return nil
		})
		ended <- err
	}()
	<-blocked
	began := time.Now()
	a.terminate(t)
	if err := <-a.exited; err != nil || time.Since(began) > 10*time.Second {
		t.Errorf("want exit 0 within the grace, got %v after %v\n%s", err, time.Since(began), a.log)
	}
	close(release)
	if err := <-ended; err == nil {
		t.Errorf("want the stream cut off, got %v", err)
	}
}
