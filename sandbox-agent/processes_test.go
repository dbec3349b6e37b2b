package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// spawn starts a process that must start.
func (a *agent) spawn(t testing.TB, r client.ProcessRequest) *client.Process {
	t.Helper()
	p, err := a.client.StartProcess(t.Context(), a.pod, r)
	if err != nil {
		t.Fatalf("start %.200q: %v\n%s", r.Command, err, a.log)
	}
	return p
}

func (a *agent) background(t testing.TB, command string) *client.Process {
	t.Helper()
	return a.spawn(t, client.ProcessRequest{Command: command})
}

// until reads a process's output from the start until it holds want, or to its
// end when want is empty, and returns it.
func (a *agent) until(t testing.TB, id, want string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var all strings.Builder
	for offset := int64(0); ; {
		o, err := a.client.ProcessOutput(ctx, a.pod, id, client.OutputQuery{Offset: offset, Wait: 30 * time.Second})
		if err != nil {
			t.Fatalf("output of %s: %v; so far %q", id, err, tail(all.String()))
		}
		all.WriteString(o.Output)
		offset = o.NextOffset
		if want != "" && strings.Contains(all.String(), want) || !o.Running && o.Output == "" {
			break
		}
	}
	if !strings.Contains(all.String(), want) {
		t.Fatalf("want %q in the output of %s, got %q", want, id, tail(all.String()))
	}
	return all.String()
}

func tail(s string) string { return s[max(0, len(s)-500):] }

// ended waits for a process's end and returns its exit code.
func (a *agent) ended(t testing.TB, id string) int {
	t.Helper()
	a.until(t, id, "")
	p := a.look(t, id)
	if p.Running || p.ExitCode == nil {
		t.Fatalf("want %s ended, got %+v", id, p)
	}
	return *p.ExitCode
}

func (a *agent) look(t testing.TB, id string) *client.Process {
	t.Helper()
	p, err := a.client.Process(t.Context(), a.pod, id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (a *agent) signal(t testing.TB, id, signal string) {
	t.Helper()
	if err := a.client.SignalProcess(t.Context(), a.pod, id, signal); err != nil {
		t.Fatalf("signal %s: %v", signal, err)
	}
}

func (a *agent) input(t testing.TB, id string, in client.ProcessInput) int {
	t.Helper()
	r, err := a.client.ProcessInput(t.Context(), a.pod, id, in)
	if err != nil {
		t.Fatalf("input %.100q: %v", in.Data, err)
	}
	return r.Written
}

func TestProcessBeginsWhereTheShellIs(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{sandboxed: []client.EnvVar{{Name: "FROM", Value: "session"}}})
	a.run(t, `cd /usr; export A='x y'; hidden=1; f() { echo "f $1"; }; export -f f; umask 027; (exit 7)`)
	p := a.spawn(t, client.ProcessRequest{
		Command: `pwd; echo "$A $FROM $B ${hidden-none}"; f 1; umask; echo err >&2; ls /proc/self/fd | tr '\n' ' '; env | grep -c '^BERTH'; exit 3`,
		Cwd:     "lib", Env: []client.EnvVar{{Name: "B", Value: "$b"}},
	})
	if p.Kind != client.KindProcess || p.ID == "" || p.Terminal || p.Started.IsZero() {
		t.Errorf("got %+v", p)
	}
	if got, want := a.until(t, p.ID, ""), "/usr/lib\nx y session $b none\nf 1\n0027\nerr\n0 1 2 3 0\n"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	if code := a.ended(t, p.ID); code != 3 {
		t.Errorf("got exit code %d", code)
	}
	if got := a.output(t, `echo "$? $PWD ${B-unset}"`); got != "7 /usr unset\n" {
		t.Errorf("the shell afterwards: %q", got)
	}
}

// TestCommandsNeverReachProcesses: not by time-out, not by cancel, not what a
// process starts meanwhile and lets go of.
func TestCommandsNeverReachProcesses(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	const start = `while read -r line; do
		(setsid sh -c 'echo orphan; while :; do sleep 0.1; echo alive; done' & )
		setsid sh -c 'echo child; exec sleep 1000' &
	done`
	for round := range 5 { // the first in the very tick of the command's start
		p := a.background(t, start)
		a.input(t, p.ID, client.ProcessInput{Data: "\n"})
		go func() {
			_, _ = a.client.ProcessInput(t.Context(), a.pod, p.ID, client.ProcessInput{Data: "\n"})
		}()
		r := a.exec(t, client.ExecRequest{Command: `sleep 1000 & setsid sleep 1000 & sleep 1000`, Timeout: 0.2})
		if !r.TimedOut {
			t.Fatalf("got %+v", r)
		}
		a.until(t, p.ID, "orphan\n")
		before := a.look(t, p.ID).OutputEnd
		for at := before; at < before+20; { // two of alive
			o, err := a.client.ProcessOutput(t.Context(), a.pod, p.ID, client.OutputQuery{Offset: at, Wait: 10 * time.Second})
			if err != nil || o.Output == "" {
				t.Fatalf("round %d: an orphan of the process went silent: %+v, %v", round, o, err)
			}
			at = o.NextOffset
		}
		if got := a.look(t, p.ID); !got.Running || got.Notice != "" {
			t.Errorf("got %+v", got)
		}
		a.signal(t, p.ID, "KILL")
		if code := a.ended(t, p.ID); code != 137 {
			t.Errorf("got exit code %d", code)
		}
	}
	if got := a.output(t, `pgrep -c sleep`+` || :`); got != "0\n" {
		t.Errorf("sleeps are left: %q: %s", got, a.output(t, "ps -ef"))
	}
}

func TestProcessOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	// A caller that goes away while queued starts nothing.
	ctx, cancel := context.WithCancel(t.Context())
	running := make(chan struct{})
	go func() {
		defer close(running)
		a.run(t, `mkfifo begun end; echo > begun; read line < end`)
	}()
	for _, err := os.Stat(filepath.Join(a.workspace, "begun")); err != nil; _, err = os.Stat(filepath.Join(a.workspace, "begun")) {
	}
	a.fifo(t, "begun", false)
	queued := make(chan error, 1)
	go func() {
		_, err := a.client.StartProcess(ctx, a.pod, client.ProcessRequest{ID: "gone", Command: "touch gone"})
		queued <- err
	}()
	cancel()
	if err := <-queued; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	a.fifo(t, "end", true)
	<-running
	p := a.spawn(t, client.ProcessRequest{ID: "there", Command: `echo on; read x; echo "got $x"`})
	a.until(t, p.ID, "on\n")
	if _, err := a.client.Process(t.Context(), a.pod, "gone"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("want nothing started for a caller that has gone, got %v", err)
	}
	a.input(t, p.ID, client.ProcessInput{Data: "it\n"})
	a.until(t, p.ID, "got it\n")
}

func TestStartIsIdempotent(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	request := client.ProcessRequest{ID: "once", Command: `echo x >> count; echo on; sleep 1000`}
	type result struct {
		p   *client.Process
		err error
	}
	results := make(chan result)
	for range 8 {
		go func() {
			p, err := a.client.StartProcess(t.Context(), a.pod, request)
			results <- result{p, err}
		}()
	}
	for range 8 {
		if r := <-results; r.err != nil || r.p.ID != "once" {
			t.Errorf("got %+v, %v", r.p, r.err)
		}
	}
	_, err := a.client.StartProcess(t.Context(), a.pod, client.ProcessRequest{ID: "once", Command: "true"})
	if e := new(client.Error); !errors.As(err, &e) || e.Code != "id_in_use" || e.Status != 400 {
		t.Errorf("another command: got %v", err)
	}
	a.until(t, "once", "on\n")
	a.signal(t, "once", "KILL")
	a.ended(t, "once")
	if p := a.spawn(t, request); p.Running {
		t.Error("want the one that has ended, not another")
	}
	if got := a.output(t, `cat count`); got != "x\n" {
		t.Errorf("it ran %d times", strings.Count(got, "x"))
	}
}

func TestProcessesAreBounded(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	first := a.background(t, `true`)
	a.ended(t, first.ID)
	var ids []string
	for range client.MaxProcesses { // the last takes the place of the one that has ended
		ids = append(ids, a.background(t, `exec sleep 1000`).ID)
	}
	list, err := a.client.Processes(t.Context(), a.pod)
	if err != nil || len(list.Processes) != client.MaxProcesses || list.Processes[0].ID != ids[0] {
		t.Fatalf("%v: %+v", err, list)
	}
	if _, err := a.client.StartProcess(t.Context(), a.pod, client.ProcessRequest{Command: "true"}); !errors.Is(err, client.ErrTooManyProcesses) {
		t.Errorf("one more: got %v", err)
	}
	if _, err := a.client.Process(t.Context(), a.pod, first.ID); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("the oldest that has ended: got %v", err)
	}
	a.signal(t, ids[10], "KILL")
	a.ended(t, ids[10])
	a.ended(t, a.background(t, `true`).ID)
	if activity, err := a.client.Activity(t.Context(), a.pod); err != nil || activity.Processes != client.MaxProcesses-1 {
		t.Errorf("got %+v, %v", activity, err)
	}
}

func TestHostileProcesses(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	for name, c := range map[string]struct {
		command string
		code    int
	}{
		"closes its descriptors":       {`for fd in /proc/self/fd/*; do eval "exec ${fd##*/}>&-"; done; exit 3`, 3},
		"500 children":                 {`for i in {1..500}; do sleep 1000 & done; kill -9 0`, 137},
		"holds its output":             {`(setsid sleep 1000 &); exit 5`, 5},
		"writes to a closed output":    {`exec >&- 2>&-; echo x; exit 6`, 6},
		"kills its parent's":           {`kill -TERM $PPID; kill -INT $PPID; kill -HUP $PPID; exit 7`, 7},
		"ends by a signal of its own":  {`kill -SEGV $$`, 139},
		"does not parse":               {`echo 'a`, 2},
		"is in a directory that isn't": {`cd /nowhere || exit 8`, 8},
	} {
		p := a.background(t, c.command)
		if code := a.wait(t, p.ID); code != c.code {
			t.Errorf("%s: want %d, got %d", name, c.code, code)
		}
	}
	if got := a.output(t, `echo on`); got != "on\n" {
		t.Errorf("got %q", got)
	}
}

func TestProcessesWithoutBash(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{environ: []string{"PATH=/usr/bin:/bin", "BASH_COMPAT=4.4"}})
	a.run(t, `cd /usr; export A='x y'; umask 027; hidden=1`)
	p := a.spawn(t, client.ProcessRequest{Command: `pwd; echo "$A $B ${hidden-none}"; umask; ls /proc/self/fd | tr '\n' ' '; read x; exit "$x"`, Env: []client.EnvVar{{Name: "B", Value: "b"}}})
	a.input(t, p.ID, client.ProcessInput{Data: "5\n"})
	if got, want := a.until(t, p.ID, ""), "/usr\nx y b none\n0027\n0 1 2 3 "; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	if code := a.ended(t, p.ID); code != 5 {
		t.Errorf("got exit code %d", code)
	}
	p = a.spawn(t, client.ProcessRequest{Command: `tty; stty size; sleep 1000`, Terminal: &client.Terminal{}})
	a.until(t, p.ID, "24 80\r\n")
	a.exec(t, client.ExecRequest{Command: `sleep 1000`, Timeout: 0.2})
	a.input(t, p.ID, client.ProcessInput{Data: "\x03"})
	if code := a.ended(t, p.ID); code != 130 {
		t.Errorf("got exit code %d", code)
	}
}
