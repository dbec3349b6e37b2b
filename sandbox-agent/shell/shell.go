package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/berth-dev/berth/sandbox-agent/process"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Config says where and how a shell runs.
type Config struct {
	Reaper *process.Reaper
	// Dir is where a new shell starts; "/" when that is impossible.
	Dir string
	// Environ is a new shell's environment, and Path in it where shells are
	// looked for. Setenv adds to it.
	Environ []string
	// Leftovers takes what children of a command write after its end. It is
	// called at most once for a command, when then one of its pipes still has a
	// writer. Write must be safe for concurrent use; Close comes when no writer is
	// left. A nil result, or a nil Leftovers, drops all of it.
	Leftovers func(command string) io.WriteCloser
	// RestoreLimits undoes what a command has done to the agent's own resource
	// limits: without open files no shell can be made ready for the next one.
	RestoreLimits func() error
	// Supervisor is the pid of what keeps background processes, which are no
	// command's; 0 is none. It waits for nothing. It may be nil.
	Supervisor func() int
	// Memory counts what the kernel kills for want of memory. It may be nil.
	Memory Memory

	exposure *exposure // set by New
}

func (c Config) supervisor() int {
	if c.Supervisor == nil {
		return 0
	}
	return c.Supervisor()
}

// Memory tells what is killed for want of memory; *memory.Watch does.
type Memory interface {
	// Kills counts the processes that were killed, each before it dies.
	Kills() uint64
	// Notice says what befell a command during which n were.
	Notice(n uint64) string
}

func (c Config) kills() uint64 {
	if c.Memory == nil {
		return 0
	}
	return c.Memory.Kills()
}

// Shell is the session's shell. It is safe for concurrent use.
type Shell struct {
	config Config
	kind   atomic.Value // string
	queue  queue
	ended  atomic.Pointer[streams] // the last command's

	interp interpreter // belongs to whoever is in the queue's turn
	path   string
	used   bool
	closed bool
}

// New finds a shell and begins to start it, without waiting for it.
func New(config Config) *Shell {
	config.exposure = &exposure{}
	s := &Shell{config: config, queue: queue{limit: wire.QueueLength}}
	bashPath, shPath := find(config.Environ, "bash"), find(config.Environ, "sh")
	switch {
	case bashPath != "":
		s.kind.Store(wire.ShellBash)
		s.path = bashPath
		s.interp = newBash(config, bashPath)
	case shPath != "":
		s.kind.Store(wire.ShellSh)
		s.interp = newSh(config, shPath)
	default:
		s.kind.Store(wire.ShellNone)
	}
	return s
}

// Kind is one of wire.ShellBash, wire.ShellSh and wire.ShellNone. It is known
// without waiting for anything. A bash that turns out to be too old becomes
// ShellSh with the first command.
func (s *Shell) Kind() string { return s.kind.Load().(string) }

// Setenv adds env (NAME=value) to the environment of shells that start from
// now on. A shell in which nothing has run is replaced, so that what a session
// is bound with reaches its first command.
func (s *Shell) Setenv(ctx context.Context, env []string) error {
	if err := s.queue.enter(ctx); err != nil {
		return err
	}
	defer s.queue.leave()
	if s.interp == nil || s.closed {
		return nil
	}
	return s.interp.setenv(env, !s.used)
}

// Run runs c when its turn comes. Cancelling ctx before that gives ctx's
// error, and nothing ran; afterwards it ends c, which gives a result like any
// other. Other errors are ErrQueueFull, ErrNoShell, ErrClosed, and those of
// starting a shell.
func (s *Shell) Run(ctx context.Context, c Command) (r Result, err error) {
	if s.Kind() == wire.ShellNone {
		return Result{}, ErrNoShell
	}
	if err := s.queue.enter(ctx); err != nil {
		return Result{}, err
	}
	defer s.queue.leave()
	if s.closed {
		return Result{}, ErrClosed
	}
	if c.Turn != nil {
		if err := c.Turn(ctx); err != nil {
			return Result{}, err
		}
	}
	s.used = true
	kills := s.config.kills()
	defer func() {
		s.tellKills(kills, &r)
		if r.streams != nil {
			s.ended.Store(r.streams)
		}
	}()
	r, err = s.interp.run(ctx, c)
	if b, ok := s.interp.(*bash); ok && errors.Is(err, errNotPipe) {
		if err := s.downgrade(b); err != nil {
			return Result{}, err
		}
		return s.interp.run(ctx, c)
	}
	return r, err
}

// tellKills lets a result say what was killed for want of memory since a count of
// before.
func (s *Shell) tellKills(before uint64, r *Result) {
	if n := s.config.kills(); n > before {
		r.Notice = join(s.config.Memory.Notice(n-before), r.Notice)
	}
}

// Close ends every process that the shell started and waits for that, until
// ctx ends. Commands must have ended, or have been cancelled, before.
func (s *Shell) Close(ctx context.Context) error {
	if err := s.queue.enter(ctx); err != nil {
		return fmt.Errorf("close shell: %w", err)
	}
	defer s.queue.leave()
	s.closed = true
	if s.interp != nil {
		s.interp.close()
	}
	return process.Scope{Agent: os.Getpid()}.Kill(ctx)
}

// find looks for an executable file in the PATH of environ, then where images
// keep their shells.
func find(environ []string, name string) string {
	var dirs []string
	for _, kv := range environ {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			dirs = filepath.SplitList(path)
		}
	}
	for _, dir := range append(dirs, "/bin", "/usr/bin", "/usr/local/bin") {
		if !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}
