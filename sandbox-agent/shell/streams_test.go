package shell

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// job is what one command left behind.
type job struct {
	command string
	ended   chan struct{}

	mu  sync.Mutex
	out bytes.Buffer
}

func (j *job) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.out.Write(p)
}

func (j *job) Close() error {
	close(j.ended) // a second one would panic
	return nil
}

// jobs keeps what commands leave behind.
type jobs struct {
	mu  sync.Mutex
	all []*job
}

func (j *jobs) open(command string) io.WriteCloser {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all = append(j.all, &job{command: command, ended: make(chan struct{})})
	return j.all[len(j.all)-1]
}

func (j *jobs) list() []*job {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.all
}

// keepJobs is called before the first command.
func (s session) keepJobs() *jobs {
	j := &jobs{}
	switch interp := s.interp.(type) {
	case *bash:
		<-interp.settled
		interp.config.Leftovers = j.open
	case *sh:
		interp.config.Leftovers = j.open
	}
	return j
}

func (s session) result(c Command) Result {
	s.t.Helper()
	c.Timeout = 20 * time.Second
	if c.OutputBytes == 0 {
		c.OutputBytes = 1 << 20
	}
	r, err := s.Run(s.t.Context(), c)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s session) settled() {
	s.t.Helper()
	if err := s.Settled(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func forEachShell(t *testing.T, f func(t *testing.T, s session)) {
	for _, kind := range []string{wire.ShellBash, wire.ShellSh} {
		t.Run(kind, func(t *testing.T) { f(t, newSession(t, kind)) })
	}
}

func TestLeftoverWriterHasAPlaceOfItsOwn(t *testing.T) {
	forEachShell(t, func(t *testing.T, s session) {
		jobs := s.keepJobs()
		if err := unix.Mkfifo(filepath.Join(s.dir, "go"), 0o600); err != nil {
			t.Fatal(err)
		}
		const command = `(read x <go; echo late; echo later >&2) & echo first`
		if r := s.result(Command{Text: command}); string(r.Stdout.Head) != "first\n" {
			t.Errorf("result %q", r.Stdout.Head)
		}
		s.settled()
		if all := jobs.list(); len(all) != 1 || all[0].command != command {
			t.Fatalf("want the command once, got %d", len(all))
		}
		if got := s.run(`echo >go; echo second`); got != "second\n" {
			t.Errorf("the next command: %q", got)
		}
		left := jobs.list()[0]
		<-left.ended
		if got := left.out.String(); !strings.Contains(got, "late\n") || !strings.Contains(got, "later\n") || len(got) != len("late\nlater\n") {
			t.Errorf("left over: %q", got)
		}
	})
}

func TestWhatEndsLeavesNothing(t *testing.T) {
	forEachShell(t, func(t *testing.T, s session) {
		jobs := s.keepJobs()
		for _, command := range []string{"true", "echo a; echo b >&2", "sleep 0.05", "echo a | cat", "(echo a &) | cat", "exit 3", "kill -9 $$"} {
			s.result(Command{Text: command})
			s.settled()
			if all := jobs.list(); len(all) != 0 {
				t.Fatalf("%q left %q", command, all[0].command)
			}
		}
	})
}

// What a child writes is in the result up to its end, and among what is left
// over from there on: no byte is lost, doubled or out of order.
func TestBorderOfAResult(t *testing.T) {
	const lines = 3000
	var want strings.Builder
	for i := range lines {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	forEachShell(t, func(t *testing.T, s session) {
		jobs := s.keepJobs()
		for i := range 40 {
			pause := ""
			if i%2 == 1 {
				pause = "sleep 0.00" + fmt.Sprint(i%8)
			}
			seen := len(jobs.list())
			r := s.result(Command{Text: fmt.Sprintf(`i=0; while [ $i -lt %d ]; do echo line $i; i=$((i+1)); done & %s`, lines, pause)})
			s.settled()
			got := string(r.Stdout.Head)
			if all := jobs.list(); len(all) > seen {
				<-all[seen].ended
				got += all[seen].out.String()
			}
			if got != want.String() {
				t.Fatalf("round %d: %d bytes in the result, %d in all, want %d", i, r.Stdout.Total, len(got), want.Len())
			}
		}
		if len(jobs.list()) == 0 {
			t.Error("no round left anything over: this proves nothing")
		}
	})
}

// follower keeps what it is handed, after hold is closed.
type follower struct {
	hold chan struct{}

	mu    sync.Mutex
	began bool
	out   map[byte]*bytes.Buffer
}

func newFollower() *follower {
	return &follower{hold: make(chan struct{}), out: map[byte]*bytes.Buffer{wire.FrameStdout: {}, wire.FrameStderr: {}}}
}

func (f *follower) Began() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.began = true
}

func (f *follower) Output(stream byte, p []byte) {
	<-f.hold
	f.mu.Lock()
	defer f.mu.Unlock()
	f.out[stream].Write(p)
}

func TestFollowerHasItAll(t *testing.T) {
	forEachShell(t, func(t *testing.T, s session) {
		for _, command := range []string{"true", "printf a; printf b >&2", "seq 100000; seq 1000 >&2; sleep 0.01; printf end", "sleep 0.01; head -c 30000 /dev/zero"} {
			f := newFollower()
			close(f.hold)
			r := s.result(Command{Text: command, Follower: f})
			r.Deliver()
			if !bytes.Equal(f.out[wire.FrameStdout].Bytes(), r.Stdout.Head) || !bytes.Equal(f.out[wire.FrameStderr].Bytes(), r.Stderr.Head) {
				t.Errorf("%q: %d and %d bytes, want %d and %d", command, f.out[wire.FrameStdout].Len(), f.out[wire.FrameStderr].Len(), r.Stdout.Total, r.Stderr.Total)
			}
		}
	})
}

// A follower that takes nothing slows the command, which its time-out ends all
// the same; the next command runs. What was written is not lost.
func TestStuckFollower(t *testing.T) {
	forEachShell(t, func(t *testing.T, s session) {
		f := newFollower()
		began := time.Now()
		r, err := s.Run(t.Context(), Command{Text: "yes", Timeout: 300 * time.Millisecond, OutputBytes: 1000, Follower: f})
		if err != nil || !r.TimedOut || time.Since(began) > 5*time.Second {
			t.Fatalf("result %+v after %v, %v", r, time.Since(began), err)
		}
		const most = 4 << 20 // some pipes and chunks
		if r.Stdout.Total > most {
			t.Errorf("the command wrote %d bytes to a reader that took none", r.Stdout.Total)
		}
		if got := s.run("echo next"); got != "next\n" {
			t.Errorf("the next command: %q", got)
		}
		close(f.hold)
		r.Deliver()
		got := f.out[wire.FrameStdout]
		if int64(got.Len()) != r.Stdout.Total || strings.Trim(got.String(), "y\n") != "" || !f.began {
			t.Errorf("%d bytes were delivered, of %d; began %v", got.Len(), r.Stdout.Total, f.began)
		}
	})
}
