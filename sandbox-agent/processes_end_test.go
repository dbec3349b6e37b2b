package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

func TestSignals(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	for signal, want := range map[string]int{"TERM": 143, "SIGINT": 130, "9": 137, "KILL": 137, "1": 129, "USR1": 138, "64": 192} {
		p := a.background(t, `exec sleep 1000`)
		a.signal(t, p.ID, signal)
		if code := a.ended(t, p.ID); code != want {
			t.Errorf("%s: want %d, got %d", signal, want, code)
		}
		if err := a.client.SignalProcess(t.Context(), a.pod, p.ID, "TERM"); !errors.Is(err, client.ErrNotRunning) {
			t.Errorf("after the end: got %v", err)
		}
	}
	p := a.background(t, `trap 'echo caught' USR1; echo on; while :; do sleep 0.1; done`)
	a.until(t, p.ID, "on\n")
	for _, bad := range []string{"", "0", "65", "-9", "+9", "09", "term", "SIGSIGTERM", "TERM ", "EXIT", "SIG", "1e1"} {
		err := a.client.SignalProcess(t.Context(), a.pod, p.ID, bad)
		if e := new(client.Error); !errors.As(err, &e) || e.Status != 400 {
			t.Errorf("%q: got %v", bad, err)
		}
	}
	a.signal(t, p.ID, "STOP")
	a.signal(t, p.ID, "USR1")
	a.signal(t, p.ID, "CONT")
	a.until(t, p.ID, "caught\n")
	a.signal(t, p.ID, "KILL") // what it has started too
	a.ended(t, p.ID)
}

// TestKillOfAWholeTree: also of what it left behind, and nobody else's.
func TestKillOfAWholeTree(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	other := a.background(t, `(setsid sleep 2000 &); sleep 2000`)
	p := a.background(t, `(setsid sleep 1000 &); setsid sleep 1000 & echo on; exit 4`)
	if code := a.wait(t, p.ID); code != 4 {
		t.Errorf("got exit code %d", code)
	}
	a.output(t, `until [ "$(pgrep -fc '^sleep 1000')" = 2 ]; do :; done`) // both are left behind
	a.signal(t, p.ID, "KILL")
	if got := a.output(t, `pgrep -fc '^sleep 1000' || pgrep -fc '^sleep 2000'`); got != "0\n2\n" {
		t.Errorf("want its own gone and the other's left, got %q", got)
	}
	if !a.look(t, other.ID).Running {
		t.Error("want the other left alone")
	}
}

// TestSupervisorIsKilled: what it started goes on, its end is known, and the
// next process starts.
func TestSupervisorIsKilled(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	p := a.background(t, `echo "$PPID"; read line; exit 9`)
	supervisor := strings.TrimSpace(a.until(t, p.ID, "\n"))
	if got := a.output(t, fmt.Sprintf(`cat /proc/%s/comm; cat /proc/%[1]s/oom_score_adj; kill -9 %[1]s`, supervisor)); !strings.HasSuffix(got, "\n1000\n") {
		t.Errorf("the supervisor: %q", got)
	}
	q := a.background(t, `echo "$PPID"`)
	if next := strings.TrimSpace(a.until(t, q.ID, "\n")); next == supervisor || next == "1" {
		t.Errorf("want another supervisor, got %s", next)
	}
	if got := a.look(t, p.ID); !got.Running || !strings.Contains(got.Notice, "supervisor") {
		t.Errorf("the orphan: %+v", got)
	}
	// Still left alone, as it is older than the command.
	a.exec(t, client.ExecRequest{Command: `sleep 1000`, Timeout: 0.2})
	a.input(t, p.ID, client.ProcessInput{Data: "\n"})
	if code := a.ended(t, p.ID); code != 9 {
		t.Errorf("want the orphan's exit code 9, got %d", code)
	}
	if got := a.look(t, q.ID); got.Notice != "" {
		t.Errorf("got %+v", got)
	}
}

func TestEverythingIsKilled(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	p := a.background(t, `sleep 1000`)
	if r := a.run(t, `x=1; kill -9 -1`); r.ExitCode != 0 && r.ExitCode != 137 {
		t.Errorf("got %+v", r)
	}
	if got := a.output(t, `echo on`); got != "on\n" {
		t.Errorf("got %q", got)
	}
	if a.wait(t, p.ID) != 137 {
		t.Errorf("got %+v", a.look(t, p.ID))
	}
	q := a.background(t, `echo again`)
	a.until(t, q.ID, "again\n")
}

// TestProcessesEndWithTheSession: they are asked first, and killed within the
// grace.
func TestProcessesEndWithTheSession(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	asked := filepath.Join(a.workspace, "asked")
	p := a.background(t, fmt.Sprintf(`trap 'echo asked > %s; exit' TERM; echo on; while :; do sleep 0.01; done`, asked))
	q := a.background(t, `trap '' TERM; echo on; while :; do sleep 1; done`)
	s := a.spawn(t, client.ProcessRequest{Command: `bash --norc -i`, Terminal: &client.Terminal{}})
	a.until(t, p.ID, "on\n")
	a.until(t, q.ID, "on\n")
	waiting := make(chan error, 1)
	go func() {
		_, err := a.client.ProcessOutput(t.Context(), a.pod, s.ID, client.OutputQuery{Offset: 1 << 40, Wait: time.Minute})
		waiting <- err
	}()
	began := time.Now()
	a.terminate(t)
	if err := <-a.exited; err != nil {
		t.Errorf("want exit code 0, got %v\n%s", err, a.log)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	if err := <-waiting; err != nil {
		t.Errorf("who waited for output: want to be told what there is, got %v", err)
	}
	if _, err := os.Stat(asked); err != nil {
		t.Errorf("want processes asked to end: %v", err)
	}
}

// TestProcessesLeaveNothing: descriptors and memory are back when they ended.
func TestProcessesLeaveNothing(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	round := func() int {
		for range client.MaxProcesses {
			a.wait(t, a.background(t, `echo x`).ID)
		}
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", a.process.Pid))
		if err != nil {
			if errors.Is(err, unix.EACCES) {
				t.Skip("needs root to see the agent's descriptors")
			}
			t.Fatal(err)
		}
		return len(entries)
	}
	first := round()
	for range 2 {
		if again := round(); again > first+4 { // connections come and go
			t.Errorf("descriptors: first %d, then %d", first, again)
		}
	}
}
