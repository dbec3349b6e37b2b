package main

import (
	"context"
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

// TestRing: the newest 4 MiB are kept, and offsets stay what they were.
func TestRing(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	const size = client.ProcessOutputBytes
	a.wait(t, a.background(t, `true`).ID)
	idle := a.memory(t)
	for name, total := range map[string]int64{"one below": size - 1, "at the limit": size, "one above": size + 1, "100 MB": 100_000_000} {
		p := a.background(t, fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x; echo -n end`, total-3))
		a.signal(t, p.ID, "CONT")
		if code := a.wait(t, p.ID); code != 0 {
			t.Fatalf("%s: exit code %d", name, code)
		}
		got := a.look(t, p.ID)
		if got.OutputEnd != total || got.OutputStart != max(0, total-size) || got.Notice != "" {
			t.Errorf("%s: got %+v", name, got)
		}
		o, err := a.client.ProcessOutput(t.Context(), a.pod, p.ID, client.OutputQuery{Offset: 0, Limit: 10})
		if err != nil || o.Offset != got.OutputStart || o.Output != "xxxxxxxxxx" {
			t.Errorf("%s: from the start: %+v, %v", name, o, err)
		}
		o, err = a.client.ProcessOutput(t.Context(), a.pod, p.ID, client.OutputQuery{Offset: -5})
		if err != nil || o.Offset != total-5 || o.Output != "xxend" || o.NextOffset != total || o.Running {
			t.Errorf("%s: from the end: %+v, %v", name, o, err)
		}
	}
	if grown := a.memory(t) - idle; grown > 32<<20 {
		t.Errorf("the agent's memory grew by %d bytes", grown)
	}
	if entries, err := os.ReadDir(a.workspace); err != nil || len(entries) != 0 {
		t.Errorf("the rings have names: %v, %v", entries, err)
	}
}

// wait waits for the end of a process whose output doesn't matter.
func (a *agent) wait(t testing.TB, id string) int {
	t.Helper()
	for {
		end := a.look(t, id).OutputEnd
		o, err := a.client.ProcessOutput(t.Context(), a.pod, id, client.OutputQuery{Offset: end + 1<<40, Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if !o.Running {
			return *o.ExitCode
		}
	}
}

func TestLongPollWakesAtOnce(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	p := a.background(t, `while read -r line; do echo "$line"; done; exit 5`)
	offset := int64(0)
	for i := range 5 {
		got := make(chan *client.ProcessOutput, 1)
		go func() {
			o, err := a.client.ProcessOutput(t.Context(), a.pod, p.ID, client.OutputQuery{Offset: offset, Wait: 50 * time.Second})
			if err != nil {
				t.Error(err)
			}
			got <- o
		}()
		began := time.Now()
		a.input(t, p.ID, client.ProcessInput{Data: fmt.Sprintln(i)})
		if o := <-got; o == nil || o.Output != fmt.Sprintln(i) || time.Since(began) > 5*time.Second {
			t.Fatalf("after %v: %+v", time.Since(began), o)
		}
		offset += 2
	}
	got := make(chan *client.ProcessOutput, 1)
	go func() {
		o, err := a.client.ProcessOutput(t.Context(), a.pod, p.ID, client.OutputQuery{Offset: offset, Wait: 50 * time.Second})
		if err != nil {
			t.Error(err)
		}
		got <- o
	}()
	a.input(t, p.ID, client.ProcessInput{EOF: true})
	if o := <-got; o == nil || o.Running || o.ExitCode == nil || *o.ExitCode != 5 {
		t.Errorf("at the end: %+v", o)
	}
	o, err := a.client.ProcessOutput(t.Context(), a.pod, p.ID, client.OutputQuery{Offset: offset, Wait: 50 * time.Second})
	if err != nil || o.Running {
		t.Errorf("after the end: %+v, %v", o, err)
	}
}

func TestOutputIsText(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	p := a.background(t, `printf 'a\377b\342\202'; read x; printf '\254c\342\202'`)
	if got := a.until(t, p.ID, "b"); got != "a\uFFFDb" {
		t.Errorf("before the character is whole: %q", got)
	}
	a.input(t, p.ID, client.ProcessInput{Data: "\n"})
	if got := a.until(t, p.ID, ""); got != "a\uFFFDb€c\uFFFD\uFFFD" {
		t.Errorf("got %q", got)
	}
	for limit, want := range map[int]string{1: "€", 2: "€", 3: "€", 4: "€c"} {
		o, err := a.client.ProcessOutput(t.Context(), a.pod, p.ID, client.OutputQuery{Offset: 3, Limit: limit})
		if err != nil || o.Output != want {
			t.Errorf("limit %d: got %+v, %v", limit, o, err)
		}
	}
}

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

func TestInput(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	p := a.background(t, `wc -c; exec 0<&-; echo closed; sleep 1000`)
	data := strings.Repeat("é", 300_000)
	if n := a.input(t, p.ID, client.ProcessInput{Data: data, EOF: true}); n != len(data) {
		t.Errorf("taken: %d of %d", n, len(data))
	}
	a.until(t, p.ID, "600000\nclosed\n")
	if _, err := a.client.ProcessInput(t.Context(), a.pod, p.ID, client.ProcessInput{Data: "x"}); !errors.Is(err, client.ErrInputClosed) {
		t.Errorf("after end-of-file: got %v", err)
	}
	if _, err := a.client.ProcessInput(t.Context(), a.pod, p.ID, client.ProcessInput{Terminal: &client.Terminal{Rows: 1}}); err == nil {
		t.Error("want a resize without a terminal refused")
	}
	q := a.background(t, `kill -STOP $$; cat`)
	if n := a.input(t, q.ID, client.ProcessInput{Data: data, EOF: true}); n == 0 || n == len(data) {
		t.Errorf("a stopped process took %d of %d", n, len(data))
	}
	a.signal(t, q.ID, "KILL")
	a.ended(t, q.ID)
	if _, err := a.client.ProcessInput(t.Context(), a.pod, q.ID, client.ProcessInput{EOF: true}); !errors.Is(err, client.ErrNotRunning) {
		t.Errorf("after its end: got %v", err)
	}
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	p := a.spawn(t, client.ProcessRequest{Command: `tty; stty size; echo "$TERM"; trap 'stty size' WINCH; trap 'echo int' INT; echo ready; while :; do read -r line && echo "<$line>" || break; done; echo eof`, Terminal: &client.Terminal{}})
	if !p.Terminal {
		t.Errorf("got %+v", p)
	}
	if got := a.until(t, p.ID, "ready\r\n"); !strings.HasPrefix(got, "/dev/pts/") || !strings.Contains(got, "24 80\r\nxterm-256color\r\n") {
		t.Errorf("got %q", got)
	}
	a.input(t, p.ID, client.ProcessInput{Terminal: &client.Terminal{Rows: 40, Cols: 132}})
	a.input(t, p.ID, client.ProcessInput{Data: "\n"}) // bash runs a trap after its read
	a.until(t, p.ID, "40 132\r\n")
	a.input(t, p.ID, client.ProcessInput{Data: "hé\r"})
	a.until(t, p.ID, "<hé>\r\n")
	a.input(t, p.ID, client.ProcessInput{EOF: true})
	a.until(t, p.ID, "eof\r\n")
	if code := a.ended(t, p.ID); code != 0 {
		t.Errorf("got exit code %d", code)
	}
	// ^C by the terminal, to the group in its foreground.
	p = a.spawn(t, client.ProcessRequest{Command: `sh -c 'echo on; exec sleep 1000'; echo "code $?"`, Terminal: &client.Terminal{Rows: 1, Cols: 4096}})
	a.until(t, p.ID, "on\r\n")
	a.input(t, p.ID, client.ProcessInput{Data: "\x03"})
	if code := a.ended(t, p.ID); code != 130 {
		t.Errorf("got exit code %d", code)
	}
	// A program that takes over the terminal as an editor does.
	p = a.spawn(t, client.ProcessRequest{Command: `stty raw -echo; echo ready; dd bs=1 count=3 2>/dev/null | od -An -tx1; stty sane`, Terminal: &client.Terminal{}})
	a.until(t, p.ID, "ready\n")
	a.input(t, p.ID, client.ProcessInput{Data: "\x03\x1b\x04"})
	a.until(t, p.ID, " 03 1b 04")
	// An interactive shell has job control.
	p = a.spawn(t, client.ProcessRequest{Command: `bash --norc -i`, Terminal: &client.Terminal{}})
	a.input(t, p.ID, client.ProcessInput{Data: "sleep 1000 &\rjobs\r"})
	a.until(t, p.ID, "Running")
	a.input(t, p.ID, client.ProcessInput{Data: "exit 6\r"})
	a.until(t, p.ID, "")
	if code := a.ended(t, p.ID); code != 6 {
		t.Errorf("got exit code %d", code)
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

// TestJobs: what a command leaves behind is listed, can be read, and is the
// shell's own otherwise.
func TestJobs(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	const command = `mkfifo go; (read line < go; echo "out $line"; echo err >&2) & echo first`
	if got := a.output(t, command); got != "first\n" {
		t.Errorf("got %q", got)
	}
	a.output(t, `(sleep 1000 >/dev/null 2>&1 &)`) // writes nowhere: no job, or not for long
	list, err := a.client.Processes(t.Context(), a.pod)
	for err == nil && len(list.Processes) != 1 {
		list, err = a.client.Processes(t.Context(), a.pod)
	}
	if err != nil {
		t.Fatal(err)
	}
	job := list.Processes[0]
	if job.Kind != client.KindJob || job.Command != command || !job.Running {
		t.Errorf("got %+v", job)
	}
	_, refusedInput := a.client.ProcessInput(t.Context(), a.pod, job.ID, client.ProcessInput{Data: "x"})
	for _, err := range []error{refusedInput, a.client.SignalProcess(t.Context(), a.pod, job.ID, "KILL")} {
		if !errors.Is(err, client.ErrIsJob) || !strings.Contains(err.Error(), "in a command") {
			t.Errorf("input or signal: got %v", err)
		}
	}
	a.fifo(t, "go", true)
	got := a.until(t, job.ID, "")
	if got != "out \nerr\n" && got != "err\nout \n" {
		t.Errorf("got %q", got)
	}
	if j := a.look(t, job.ID); j.Running || j.ExitCode != nil {
		t.Errorf("got %+v", j)
	}
	if got := a.output(t, `echo second`); got != "second\n" {
		t.Errorf("a later result: %q", got)
	}
}

func TestJobsMakeRoomForProcesses(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	for range client.MaxProcesses + 2 {
		a.run(t, `sleep 1000 &`)
	}
	for range 3 {
		a.background(t, `exec sleep 1000`)
	}
	list, err := a.client.Processes(t.Context(), a.pod)
	if err != nil || len(list.Processes) != client.MaxProcesses || list.Processes[client.MaxProcesses-1].Kind != client.KindProcess {
		t.Errorf("%v: %+v", err, list)
	}
}

// TestFullDiskHoldsUpNoProcess: its output is dropped, and its notice says so.
func TestFullDiskHoldsUpNoProcess(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to mount a small disk")
	}
	a := startAgent(t, agentOptions{})
	a.output(t, `mount -t tmpfs -o size=128k small .`)
	p := a.background(t, `head -c 1000000 /dev/zero | tr '\0' x; echo done; exit 3`)
	if code := a.wait(t, p.ID); code != 3 {
		t.Errorf("got exit code %d", code)
	}
	got := a.look(t, p.ID)
	if !strings.Contains(got.Notice, "dropped") || got.OutputEnd > 1_000_000 || got.OutputEnd == 0 {
		t.Errorf("got %+v", got)
	}
	o, err := a.client.ProcessOutput(t.Context(), a.pod, p.ID, client.OutputQuery{})
	if err != nil || strings.Trim(o.Output, "x") != "" {
		t.Errorf("got %.100q, %v", o.Output, err)
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
