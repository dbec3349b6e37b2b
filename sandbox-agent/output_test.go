package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// logged reads a log as the file that commands see and as the artifact, which
// must be the same.
func (a *agent) logged(t testing.TB, l *client.LogFile) string {
	t.Helper()
	if l == nil {
		t.Fatal("no log")
	}
	file, err := os.ReadFile(filepath.Join(a.workspace, l.Path))
	if err != nil {
		t.Fatal(err)
	}
	artifact, r, err := a.read(t, l.ID, client.Span{})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file, artifact) || int64(len(file)) != l.Size || r.MIMEType != "text/plain" {
		t.Errorf("log %+v: file of %d bytes, artifact of %d, %s", l, len(file), len(artifact), r.MIMEType)
	}
	return string(file)
}

// plainSh makes a bash serve as a plain sh.
var plainSh = []string{"PATH=/usr/bin:/bin", "BASH_COMPAT=4.4"}

// A log begins with the first byte that the result can't hold: at the limit,
// one below and one above, in a command that is over at once, one that takes its
// time and one without a bash.
func TestLogBeginsBeyondTheInlineLimit(t *testing.T) {
	t.Parallel()
	const limit = 1000
	for name, o := range map[string]agentOptions{"bash": {}, "sh": {environ: plainSh}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startAgent(t, o)
			for _, pause := range []string{"", "; sleep 0.01"} {
				for _, n := range []int{limit - 1, limit, limit + 1} {
					r := a.exec(t, client.ExecRequest{Command: fmt.Sprintf("head -c %d /dev/zero%s", n, pause), MaxOutputBytes: limit})
					if n <= limit {
						if r.Log != nil || r.Truncated || r.Stdout != strings.Repeat("\x00", n) {
							t.Errorf("%d bytes%s: want all of it inline, got %d and log %+v", n, pause, len(r.Stdout), r.Log)
						}
						if _, err := os.Lstat(filepath.Join(a.workspace, ".berth")); err == nil && pause == "" {
							t.Errorf("%d bytes%s: a directory was made", n, pause)
						}
						continue
					}
					if !r.Truncated || r.Log == nil || r.Log.Stderr != nil || a.logged(t, r.Log.Stdout) != strings.Repeat("\x00", n) {
						t.Errorf("%d bytes%s: %+v", n, pause, r)
					}
					if !strings.Contains(r.Stdout, r.Log.Stdout.Path+" ...]") {
						t.Errorf("%d bytes%s: the result doesn't say where all of it is", n, pause)
					}
					if err := os.RemoveAll(filepath.Join(a.workspace, ".berth")); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// Bytes are what was written: in the log as they were, in the result with each
// that is not UTF-8 replaced.
func TestLogIsExact(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	const ends = `\0\r\n\377\376\303(\r\0`
	r := a.exec(t, client.ExecRequest{
		Command:        `printf '` + ends + `'; seq 1000; printf '` + ends + `' >&2; seq 1000 >&2; printf '` + ends + `'; printf '` + ends + `\n\n' >&2`,
		MaxOutputBytes: 100,
	})
	var seq strings.Builder
	for i := range 1000 {
		fmt.Fprintln(&seq, i+1)
	}
	const raw, text = "\x00\r\n\xff\xfe\xc3(\r\x00", "\x00\r\n\uFFFD\uFFFD\uFFFD(\r\x00"
	if diff := cmp.Diff(raw+seq.String()+raw, a.logged(t, r.Log.Stdout)); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(raw+seq.String()+raw+"\n\n", a.logged(t, r.Log.Stderr)); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(r.Stdout, text) || !strings.HasSuffix(r.Stdout, text) || !strings.HasSuffix(r.Stderr, text+"\n\n") {
		t.Errorf("inline: %q and %q", r.Stdout, r.Stderr)
	}
	if got := a.output(t, "grep -c 7 "+r.Log.Stdout.Path+"; rm "+r.Log.Stdout.Path); got != "271\n" {
		t.Errorf("a command finds %q in the log", got)
	}
	if data, _, err := a.read(t, r.Log.Stdout.ID, client.Span{Offset: 9, Length: 4}); err != nil || string(data) != "1\n2\n" {
		t.Errorf("a part of a log that was unlinked: %q, %v", data, err)
	}
}

func TestLogLimitIsTheSessions(t *testing.T) {
	t.Parallel()
	const limit = 100_000
	a := startAgent(t, agentOptions{limits: client.Limits{LogBytes: limit}})
	for _, n := range []int{limit - 1, limit, limit + 1} {
		r := a.exec(t, client.ExecRequest{Command: fmt.Sprintf("head -c %d /dev/zero", n), MaxOutputBytes: 10})
		l := r.Log.Stdout
		if a.logged(t, l) != strings.Repeat("\x00", min(n, limit)) || l.Truncated != (n > limit) || l.Truncated != strings.Contains(r.Notice, "reached their limit") || r.ExitCode != 0 {
			t.Errorf("%d bytes: log %+v, notice %q", n, l, r.Notice)
		}
	}
	if got := a.output(t, "ls .berth/logs | wc -l"); got != "1\n" {
		t.Errorf("want the older logs swept, got %s", got)
	}
	r := a.exec(t, client.ExecRequest{Command: "seq 1000", MaxOutputBytes: 10, NoLog: true})
	if r.Log != nil || !r.Truncated || !strings.Contains(r.Stdout, "bytes omitted ...]") {
		t.Errorf("want no log, got %+v", r)
	}
}

// A session may put anything in the way of its logs: commands run, and results
// say that there is none.
func TestNoLogIsNoFailure(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	for _, obstacle := range []string{"touch .berth", "mkfifo .berth", "ln -s /tmp .berth", "mkdir .berth; ln -s /tmp .berth/logs", "mkdir .berth; mkfifo .berth/logs"} {
		a.output(t, "rm -rf .berth; "+obstacle)
		r := a.exec(t, client.ExecRequest{Command: "seq 1000; echo done", MaxOutputBytes: 10})
		if r.ExitCode != 0 || r.Log != nil || !strings.Contains(r.Notice, "No log") || !strings.HasSuffix(r.Stdout, "done\n") {
			t.Errorf("%s: %+v", obstacle, r)
		}
	}
}

func TestLogsOfAnAgentBeforeAreSwept(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	old := filepath.Join(workspace, ".berth", "logs", "0123456789abcdef.stdout")
	if err := errors.Join(os.MkdirAll(filepath.Dir(old), 0o700), os.WriteFile(old, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	a := startAgent(t, agentOptions{args: []string{"--workspace=" + workspace}})
	a.workspace = workspace
	r := a.exec(t, client.ExecRequest{Command: "seq 1000", MaxOutputBytes: 10}) // waits for it
	if got := a.output(t, "ls .berth/logs"); got != filepath.Base(r.Log.Stdout.Path)+"\n" {
		t.Errorf("logs: %q", got)
	}
}

// sums are the SHA-256 of what a sink was handed.
type sums struct {
	kinds  map[byte]io.Writer
	counts map[byte]int64
}

func (s *sums) sink(kind byte, data []byte) error {
	s.counts[kind] += int64(len(data))
	_, err := s.kinds[kind].Write(data)
	return err
}

func TestFramesAreExact(t *testing.T) {
	t.Parallel()
	const size = 20_000_000 // many times what is buffered anywhere
	for name, o := range map[string]agentOptions{"bash": {}, "sh": {environ: plainSh}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startAgent(t, o)
			data := noise(size)
			a.write(t, "data", data)
			out, err := sha256.New(), sha256.New()
			s := sums{map[byte]io.Writer{client.FrameStdout: out, client.FrameStderr: err}, map[byte]int64{}}
			r, fault := a.client.ExecStream(t.Context(), a.pod, client.ExecRequest{Command: "cat data & cat data >&2; wait"}, time.Minute, s.sink)
			if fault != nil {
				t.Fatal(fault)
			}
			want := sha256.Sum256(data)
			if !bytes.Equal(out.Sum(nil), want[:]) || !bytes.Equal(err.Sum(nil), want[:]) || r.StdoutBytes != size || r.StderrBytes != size {
				t.Errorf("%v bytes came, of %d and %d", s.counts, r.StdoutBytes, r.StderrBytes)
			}
			for _, l := range []*client.LogFile{r.Log.Stdout, r.Log.Stderr} {
				log, err := os.ReadFile(filepath.Join(a.workspace, l.Path))
				if err != nil || sha256.Sum256(log) != want {
					t.Errorf("log of %d bytes: %v", len(log), err)
				}
			}
		})
	}
}

// collected is what a sink was handed, and a channel that tells of it.
type collected struct {
	mu   sync.Mutex
	data map[byte]string
	news chan struct{}
}

func newCollected() *collected {
	return &collected{data: map[byte]string{}, news: make(chan struct{}, 1)}
}

func (c *collected) sink(kind byte, data []byte) error {
	c.mu.Lock()
	c.data[kind] += string(data)
	c.mu.Unlock()
	select {
	case c.news <- struct{}{}:
	default:
	}
	return nil
}

func (c *collected) get(kind byte) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.data[kind]
}

func TestFramesComeAsOutputHappens(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, "mkfifo go")
	c := newCollected()
	result := make(chan *client.ExecResult, 1)
	go func() {
		r, err := a.client.ExecStream(t.Context(), a.pod, client.ExecRequest{Command: `printf first; printf err >&2; read x <go; printf second; exit 3`}, 0, c.sink)
		if err != nil {
			t.Error(err)
		}
		result <- r
	}()
	for c.get(client.FrameStdout) != "first" || c.get(client.FrameStderr) != "err" {
		select {
		case <-c.news:
		case <-time.After(10 * time.Second):
			t.Fatalf("want output while the command runs, got %q", c.data)
		}
	}
	a.fifo(t, "go", true)
	r := <-result
	if r == nil || r.ExitCode != 3 || r.Stdout != "firstsecond" || r.Stderr != "err" || !strings.Contains(r.Notice, "as it was before this command") {
		t.Errorf("result %+v", r)
	}
	if diff := cmp.Diff(map[byte]string{client.FrameStdout: "firstsecond", client.FrameStderr: "err"}, c.data); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
}

// Frames and result agree whatever the command is and however it ends.
func TestFramesAgreeWithTheResult(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	for _, x := range []client.ExecRequest{
		{Command: "true"},
		{Command: `printf 'a\n'; printf '\0b' >&2`},
		{Command: "sleep 0.01; printf tail"},
		{Command: "printf head; sleep 9", Timeout: 0.2},
		{Command: "printf x; kill -9 $$"},
		{Command: "cat", Stdin: strings.Repeat("in", 50_000)},
		{Command: "echo 'abc"},
		{Command: "exec 1>&-; echo gone"},
	} {
		c := newCollected()
		r, err := a.client.ExecStream(t.Context(), a.pod, x, 0, c.sink)
		if err != nil {
			t.Fatalf("%q: %v", x.Command, err)
		}
		if c.data[client.FrameStdout] != r.Stdout || c.data[client.FrameStderr] != r.Stderr {
			t.Errorf("%q: frames %q, result %+v", x.Command, c.data, r)
		}
	}
	if got := a.output(t, "echo next"); got != "next\n" {
		t.Errorf("the next command: %q", got)
	}
}

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

func TestCancelledWhileQueuedIsAResultInFrames(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	release, held := a.hold(t, "")
	queued := make(chan *client.ExecResult, 1)
	go func() {
		r, err := a.client.ExecStream(t.Context(), a.pod, client.ExecRequest{Command: "touch ran", ID: "queued"}, 0, newCollected().sink)
		if err != nil {
			t.Error(err)
		}
		queued <- r
	}()
	for a.client.CancelExec(t.Context(), a.pod, "queued") != nil {
		if t.Context().Err() != nil {
			return
		}
	}
	if r := <-queued; r == nil || r.ExitCode != 137 || !strings.Contains(r.Notice, "nothing ran") {
		t.Errorf("want a cancelled result, got %+v", r)
	}
	release()
	<-held
}
