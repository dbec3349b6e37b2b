package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/process"
)

// bash is the interpreter with full guarantees. Its methods are called one at
// a time; between two commands a goroutine settles the shell.
type bash struct {
	config Config
	path   string
	env    []string

	settled chan struct{} // closed when nobody settles
	life    *life         // nil: none, or it failed to become ready
	failure error         // why
	notice  string        // for the next result
	status  int           // $? for the next command

	tick      uint64 // when the last command began
	memory    remembered
	fallBacks int // commands in a row after which the shell failed
}

func newBash(config Config, path string) *bash {
	b := &bash{config: config, path: path, settled: make(chan struct{})}
	go func() {
		defer close(b.settled)
		b.start()
	}()
	return b
}

// start begins a new life and waits until it is ready.
func (b *bash) start() {
	from := b.memory
	b.memory = remembered{} // not a second time, if the shell fails with it
	b.begin(from)
	if b.life == nil && from.dir != "" {
		b.note("What was exported could not be restored.")
		b.begin(remembered{})
		return
	}
	if b.memory.dir == "" {
		b.memory = from
	}
}

func (b *bash) begin(from remembered) {
	begin := func() {
		environ := slices.Concat(b.config.Environ, b.env)
		b.life, b.failure = begin(b.config.Reaper, b.path, from.in(b.config.Dir), environ, from.state)
	}
	begin()
	if errors.Is(b.failure, unix.EAGAIN) && b.room(nil).make() {
		begin()
	}
	if b.failure == nil {
		b.settle(nil)
	}
}

func (b *bash) setenv(env []string, restart bool) error {
	b.env = env
	if !restart || len(env) == 0 {
		return nil
	}
	<-b.settled
	if b.life != nil {
		b.life.close()
	}
	b.memory = remembered{}
	b.start()
	b.notice = ""
	return b.failure
}

func (b *bash) close() {
	<-b.settled
	if b.life != nil {
		b.life.close()
		b.life = nil
	}
}

// ready waits until the shell is ready for a command, and starts one if there is
// none.
func (b *bash) ready() (*life, error) {
	<-b.settled
	b.revive()
	if b.life == nil {
		b.start()
	}
	if b.life == nil {
		return nil, fmt.Errorf("the shell does not start: %w", b.failure)
	}
	return b.life, nil
}

// run runs one command in the resident shell.
func (b *bash) run(ctx context.Context, c Command) (Result, error) {
	l, err := b.ready()
	if err != nil {
		return Result{}, err
	}
	in := os.DevNull
	hint := ""
	if !l.spare.Ended(0) {
		hint = neutral(c.Text)
	}
	if c.Stdin != "" {
		stop, err := feed(l.pipePath(fdStdin), c.Stdin)
		if err != nil {
			return Result{}, err
		}
		defer stop()
		in = fmt.Sprintf("/proc/self/fd/%d", fdStdin)
	}
	l.out.begin(c, b.config.Leftovers)
	began := time.Now()
	b.tick = process.Now()
	if err := l.send(words(in, b.status, hint, c)); err != nil {
		// Nothing was read. The next command finds a shell that can be reached.
		b.lost("a command took the descriptor away by which it is told of commands")
		return Result{}, fmt.Errorf("hand the command to the shell: %w", err)
	}
	result, leftover, ended := b.await(ctx, l, c)
	b.config.exposure.idle(l.main.PID, l.spare.PID)
	l.out.seal(&result)
	l.out = nil
	result.Duration = time.Since(began)
	if ended && !b.takeOver(l) {
		b.notice = ""
		b.lost("it ended together with its spare")
	}
	result.Notice, b.notice = b.notice, ""
	b.status = result.ExitCode
	b.settleSoon(leftover, result.streams)
	return result, nil
}

// words returns what the shell finds in __berth, from index 1.
func words(stdin string, status int, hint string, c Command) []string {
	before := strconv.Itoa(status)
	if c.Cwd == "" && len(c.Env) == 0 {
		return []string{stdin, c.Text, before, hint, "", ""}
	}
	env := append(slices.Clone(c.Env), "PWD") // without any, export would list them all
	return append([]string{stdin, c.Text, before, "", cmp.Or(c.Cwd, "."), strconv.Itoa(len(env))}, env...)
}

// pumpDelay is how long a command's output may wait in its pipes: the commands
// that are over by then cost no goroutine and no poller.
const pumpDelay = time.Millisecond

// await waits for the end of the running command, however it comes. It returns
// whether the command took its shell with it, and a record that already
// belongs to what comes next.
func (b *bash) await(ctx context.Context, l *life, c Command) (r Result, leftover *record, ended bool) {
	quick := min(pumpDelay, c.Timeout)
	timer := time.NewTimer(quick)
	defer timer.Stop()
	var stuck <-chan time.Time
	for pumped := false; ; {
		select {
		case rec := <-l.records:
			switch rec.kind {
			case 'D':
				r.ExitCode = rec.value & 0xff
				return r, nil, false
			case 'S', 'R', 'N': // the loop went round without a D
				b.note("The command ended early: break or continue outside a loop.")
				return r, &rec, false
			}
		case <-l.main.Exited():
			if status, ok := l.rest(); ok { // it failed afterwards: see settle
				r.ExitCode = status & 0xff
				return r, nil, false
			}
			r.ExitCode = l.main.ExitCode()
			b.note(fmt.Sprintf("The command ended its shell (exit code %d). The session goes on as it was before this command.", r.ExitCode))
			return r, nil, true
		case <-timer.C:
			if !pumped {
				pumped = true
				l.out.pump()
				timer.Reset(c.Timeout - quick)
				stuck = time.After(stuckTime)
				b.config.exposure.runs(b.scope(l))
				continue
			}
			r.ExitCode, r.TimedOut = killed, true
			b.kill(l)
			return r, nil, true
		case <-stuck:
			b.note(b.config.makeRoom(b.scope(l)))
		case <-ctx.Done():
			r.ExitCode = killed
			b.kill(l)
			return r, nil, true
		}
	}
}

// scope is the running command's processes.
func (b *bash) scope(l *life) process.Scope {
	return process.Scope{Agent: os.Getpid(), Shell: l.main.PID, Spare: l.spare.PID, Start: b.tick, Mark: l.mark}
}

// kill ends the command's processes and its shell.
func (b *bash) kill(l *life) {
	// A spare that is stopped when its parent ends is hung up by the kernel. If this
	// fails, so does what follows.
	_ = l.spare.Signal(unix.SIGCONT)
	if err := kill(b.scope(l)); err != nil {
		b.note(mayRun(err))
		return
	}
	select {
	case <-l.main.Exited():
	case <-time.After(settleTime): // it fell to someone else
	}
}

// revive lets the spare go on for a shell that ended while nothing ran: a job may
// have killed it.
func (b *bash) revive() {
	l := b.life
	if l == nil {
		return
	}
	select {
	case <-l.main.Exited():
	default:
		return
	}
	if l.dropPipes(); !b.takeOver(l) {
		b.lost("it ended between two commands")
		return
	}
	b.note("The shell ended between two commands. The session goes on as it was.")
	b.settle(nil)
}

// lost gives up a life and says so in the next result.
func (b *bash) lost(why string) {
	b.life.dropPipes()
	b.life.close()
	b.life = nil
	b.note("The shell was started anew (" + why + "): " + b.memory.lost() + ", files are kept.")
}

func (b *bash) note(s string) { b.notice = join(b.notice, s) }

// join joins two notices, either of which may be empty.
func join(a, b string) string { return strings.TrimSpace(a + " " + b) }
