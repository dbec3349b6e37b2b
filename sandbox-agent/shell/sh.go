package shell

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/process"
	"github.com/berth-dev/berth/sandbox-agent/spool"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// sh runs each command in a new process of a plain POSIX shell, for images
// without a bash. Working directory, umask and exported variables persist;
// functions, other variables, options and descriptors don't. A command that
// exits early leaves them as they were.
type sh struct {
	config Config
	path   string
	env    []string
	state  string // source that restores what persists
}

//go:embed sh.sh
var shScript string

func newSh(config Config, path string) *sh { return &sh{config: config, path: path} }

func (s *sh) setenv(env []string, restart bool) error {
	s.env = env
	return nil
}

func (s *sh) close() {}

func (s *sh) run(ctx context.Context, c Command) (Result, error) {
	var r Result
	p, err := s.start(c)
	if errors.Is(err, unix.EAGAIN) && s.config.Reaper.Full() {
		r.Notice = clearScope(process.Scope{Agent: os.Getpid(), Keep: s.config.supervisor()})
		p, err = s.start(c)
	}
	if err != nil {
		return Result{}, err
	}
	began, tick := time.Now(), process.Now()
	defer p.saved.Close()
	command := process.Scope{Agent: os.Getpid(), Shell: p.child.PID, Start: tick, Mark: p.child.PID}
	s.config.exposure.runs(command)
	s.await(ctx, c, p, command, &r)
	r.Duration = time.Since(began)
	p.out.seal(&r)
	p.out.settle()
	return r, nil
}

// await waits for the command's end, and brings it about when it is time.
func (s *sh) await(ctx context.Context, c Command, p *shProcess, command process.Scope, r *Result) {
	timer, stuck := time.NewTimer(c.Timeout), time.NewTimer(stuckTime)
	defer timer.Stop()
	defer stuck.Stop()
	for {
		select {
		case <-p.child.Exited():
			r.ExitCode = p.child.ExitCode()
			s.keep(p.saved)
			return
		case <-stuck.C:
			r.Notice = join(r.Notice, s.config.makeRoom(command))
			continue
		case <-timer.C:
			r.TimedOut = true
		case <-ctx.Done():
		}
		r.ExitCode = killed
		if err := kill(command); err != nil {
			r.Notice = join(r.Notice, mayRun(err))
		}
		return
	}
}

// shProcess is one running command.
type shProcess struct {
	child *process.Child
	out   *streams
	saved *os.File
}

func (s *sh) start(c Command) (*shProcess, error) {
	command, err1 := spool.Memory("command", []byte(prelude(c)+c.Text))
	state, err2 := spool.Memory("state", []byte(s.state))
	saved, err3 := spool.Memory("saved", nil)
	stdin, err4 := spool.Memory("stdin", []byte(c.Stdin))
	stdout, err5 := newCapture(wire.FrameStdout)
	stderr, err6 := newCapture(wire.FrameStderr)
	p := &shProcess{out: newStreams(stdout, stderr), saved: saved}
	err := errors.Join(err1, err2, err3, err4, err5, err6)
	if err == nil {
		files := []uintptr{stdin.Fd(), uintptr(stdout.write), uintptr(stderr.write), command.Fd(), state.Fd(), saved.Fd()}
		argv := []string{"sh", "-c", shScript, "sh"}
		p.child, err = spawn(s.config.Reaper, s.path, argv, s.config.Dir, slices.Concat(s.config.Environ, s.env), files)
	}
	closeAll(command, state, stdin)
	if err != nil {
		closeAll(saved)
		p.out.discard()
		return nil, fmt.Errorf("the shell does not start: %w", err)
	}
	p.out.begin(c, s.config.Leftovers)
	p.out.pump()
	return p, nil
}

// prelude makes a command begin with cd and export.
func prelude(c Command) string {
	var b strings.Builder
	if c.Cwd != "" {
		fmt.Fprintf(&b, "cd -- %s || exit; ", quote(c.Cwd))
	}
	for _, kv := range c.Env {
		fmt.Fprintf(&b, "export %s; ", quote(kv))
	}
	return b.String()
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// keep takes over what the command saved: its umask and exports, a NUL, its
// working directory. A command that didn't get so far saved nothing.
func (s *sh) keep(saved *os.File) {
	const most = 1 << 20
	data, err := io.ReadAll(io.NewSectionReader(saved, 0, most))
	if err != nil {
		return
	}
	exports, dir, complete := bytes.Cut(data, []byte{0})
	if !complete {
		return
	}
	s.state = fmt.Sprintf("umask %scd -- %s\n", exports, quote(strings.TrimSuffix(string(dir), "\n")))
}
