package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/spool"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Launch is how to start a process that goes on where the shell is: in its
// working directory, with its umask, its exported variables and functions.
type Launch struct {
	Path string // of the interpreter
	Argv []string
	Env  []string
	// Dir is where it begins.
	Dir *os.File
	// Command and State are its descriptors 3 and 4. The command doesn't see them.
	Command, State *os.File
}

func (l *Launch) close() { closeAll(l.Dir, l.Command, l.State) }

// snapshot is what an interpreter knows of itself.
type snapshot struct {
	path   string
	script string // evaluates the source in descriptor 4, then that in 3
	prefix string // of the source in 3: lets go of that descriptor
	env    []string
	dir    string
	state  string // source that restores what is exported
}

// Scripts. The shell's exported functions are not to get in the way; what fails
// in the state (a variable that is read-only in every shell) is nobody's affair.
const (
	launchBash = `. /proc/self/fd/4 >/dev/null 2>&1; unset -f builtin exec; exec 4<&-; ` +
		`builtin mapfile -d '' -t -u 3 __berth; exec 3<&-; builtin eval "$__berth"`
	launchSh       = `. /proc/self/fd/4; exec 4<&-; . /proc/self/fd/3`
	launchShPrefix = "exec 3<&-; "
)

// Launch calls start in the queue's turn, with what it needs to start c, of
// which Text, Cwd and Env count, in the shell's place. Neither disturbs the
// shell. Its errors are those of Run and of start.
func (s *Shell) Launch(ctx context.Context, c Command, start func(Launch) error) error {
	if s.Kind() == wire.ShellNone {
		return ErrNoShell
	}
	if err := s.queue.enter(ctx); err != nil {
		return err
	}
	defer s.queue.leave()
	if s.closed {
		return ErrClosed
	}
	s.used = true
	snap, err := s.interp.snapshot(ctx)
	if b, ok := s.interp.(*bash); ok && errors.Is(err, errNotPipe) {
		if err := s.downgrade(b); err != nil {
			return err
		}
		snap, err = s.interp.snapshot(ctx)
	}
	if err != nil {
		return err
	}
	l, err := snap.launch(c)
	if err != nil {
		return err
	}
	defer l.close()
	return start(l)
}

// downgrade goes on with a plain shell: a bash before 5.1 makes no pipes.
func (s *Shell) downgrade(b *bash) error {
	s.interp = newSh(s.config, s.path)
	s.kind.Store(wire.ShellSh)
	return s.interp.setenv(b.env, false)
}

func (s snapshot) launch(c Command) (Launch, error) {
	l := Launch{Path: s.path, Argv: []string{"sh", "-c", s.script, "sh"}, Env: s.env}
	if s.script == launchBash {
		l.Argv = []string{"bash", "--norc", "--noprofile", "-c", s.script, "bash"}
	}
	var err1, err2, err3 error
	l.Command, err1 = spool.Memory("command", []byte(s.prefix+prelude(c)+c.Text))
	l.State, err2 = spool.Memory("state", []byte(s.state))
	l.Dir, err3 = openDir(s.dir)
	if err := errors.Join(err1, err2, err3); err != nil {
		l.close()
		return Launch{}, fmt.Errorf("start the process: %w", err)
	}
	return l, nil
}

// openDir opens a directory, or / when it can't be entered.
func openDir(path string) (*os.File, error) {
	for _, dir := range []string{path, "/"} {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if unix.Faccessat(fd, ".", unix.X_OK, 0) == nil {
			return os.NewFile(uintptr(fd), dir), nil
		}
		unix.Close(fd)
	}
	return nil, errors.New("/ can't be entered")
}

func (s *sh) snapshot(context.Context) (snapshot, error) {
	return snapshot{
		path: s.path, script: launchSh, prefix: launchShPrefix,
		env: slices.Concat(s.config.Environ, s.env), dir: s.config.Dir, state: s.state,
	}, nil
}

// bashState makes source of what a bash tells of itself: commands, a NUL, the
// name of its working directory. The process begins in that directory already,
// whatever has become of its name; one that leads there is kept.
func bashState(told string) (string, bool) {
	commands, dir, complete := strings.Cut(told, "\x00")
	if !complete {
		return "", false
	}
	dir = quote(strings.TrimSuffix(dir, "\n"))
	return fmt.Sprintf("%s[[ %s -ef . ]] && builtin cd -- %s\n", commands, dir, dir), true
}
