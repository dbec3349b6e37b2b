package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/process"
)

// settleTime is how long a shell may take to be ready for its next command:
// much more than a fork, also on a machine under load.
const settleTime = 5 * time.Second

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
	b.life, b.failure = begin(b.config.Reaper, b.path, b.config.Dir, slices.Concat(b.config.Environ, b.env))
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

// run runs one command in the resident shell.
func (b *bash) run(ctx context.Context, c Command) (Result, error) {
	<-b.settled
	if b.life == nil {
		b.start()
	}
	if b.life == nil {
		return Result{}, fmt.Errorf("the shell does not start: %w", b.failure)
	}
	l := b.life
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
	l.stdout.keep(c.OutputBytes)
	l.stderr.keep(c.OutputBytes)
	began, tick := time.Now(), process.Now()
	if err := l.send(words(in, b.status, hint, c)); err != nil {
		return Result{}, fmt.Errorf("hand the command to the shell: %w", err)
	}
	result, leftover, ended := b.await(ctx, l, c, tick)
	result.Stdout, result.Stderr = l.stdout.seal(), l.stderr.seal()
	l.stdout, l.stderr = nil, nil
	result.Duration = time.Since(began)
	if ended && !b.takeOver(l) {
		b.notice = ""
		b.lost("it ended together with its spare")
	}
	result.Notice, b.notice = b.notice, ""
	b.status = result.ExitCode
	b.settleSoon(leftover)
	return result, nil
}

// preamble makes a command begin with cd and export. The words after the
// command's are the directory and the variables; %d is how many.
const preamble = `builtin cd -- "${__berth[6]}" && builtin export -- "${__berth[@]:7:%d}" && builtin eval "${__berth[5]}"`

// words returns what the shell finds in __berth, from index 1.
func words(stdin string, status int, hint string, c Command) []string {
	before := strconv.Itoa(status)
	if c.Cwd == "" && len(c.Env) == 0 {
		return []string{stdin, c.Text, before, hint, ""}
	}
	cwd := c.Cwd
	if cwd == "" {
		cwd = "."
	}
	env := append(slices.Clone(c.Env), "PWD") // without any, export would list them all
	return append([]string{stdin, fmt.Sprintf(preamble, len(env)), before, "", c.Text, cwd}, env...)
}

// pumpDelay is how long a command's output may wait in its pipes: the commands
// that are over by then cost no goroutine and no poller.
const pumpDelay = time.Millisecond

// await waits for the end of the running command, however it comes. It returns
// whether the command took its shell with it, and a record that already
// belongs to what comes next.
func (b *bash) await(ctx context.Context, l *life, c Command, tick uint64) (r Result, leftover *record, ended bool) {
	quick := min(pumpDelay, c.Timeout)
	timer := time.NewTimer(quick)
	defer timer.Stop()
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
			if code, ok := l.status(); ok { // it failed afterwards: see settle
				r.ExitCode = code & 0xff
				return r, nil, false
			}
			r.ExitCode = l.main.ExitCode()
			b.note(fmt.Sprintf("The command ended its shell (exit code %d). The session goes on as it was before this command.", r.ExitCode))
			return r, nil, true
		case <-timer.C:
			if !pumped {
				pumped = true
				l.stdout.pump()
				l.stderr.pump()
				timer.Reset(c.Timeout - quick)
				continue
			}
			r.ExitCode, r.TimedOut = killed, true
			b.kill(l, tick)
			return r, nil, true
		case <-ctx.Done():
			r.ExitCode = killed
			b.kill(l, tick)
			return r, nil, true
		}
	}
}

// kill ends the command's processes and its shell.
func (b *bash) kill(l *life, tick uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), killTime)
	defer cancel()
	scope := process.Scope{Agent: os.Getpid(), Shell: l.main.PID, Spare: l.spare.PID, Start: tick, Mark: l.spare.PID}
	if err := scope.Kill(ctx); err != nil {
		b.note(fmt.Sprintf("Processes of the command may still run: %v.", err))
	}
	select {
	case <-l.main.Exited():
	case <-ctx.Done():
	}
}

// settleSoon prepares the shell for the next command while the caller already
// has its result.
func (b *bash) settleSoon(leftover *record) {
	b.settled = make(chan struct{})
	go func() {
		defer close(b.settled)
		if b.life == nil {
			b.start()
			return
		}
		b.settle(leftover)
	}()
}

// settle waits until the shell has forked its spare and made its pipes. A
// shell that doesn't get there is replaced by a spare; when that fails too,
// the life is over.
func (b *bash) settle(pending *record) {
	const attempts = 3
	l := b.life
	for range attempts {
		if b.failure = b.prepare(l, pending); b.failure == nil {
			return
		}
		pending = nil
		if !b.fallBack(l) {
			break
		}
	}
	b.lost("it failed between two commands")
}

var errNotReady = errors.New("the shell ended, or got stuck, before it was ready for the next command")

// prepare waits for the records S and R, and opens the pipes.
func (b *bash) prepare(l *life, pending *record) error {
	var next process.Pin
	forked := false
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	for {
		var rec record
		if pending != nil {
			rec, pending = *pending, nil
		} else {
			var ok bool
			select {
			case rec, ok = <-l.records:
			case <-l.main.Exited():
			case <-timer.C:
			}
			if !ok {
				b.keepOne(l, next)
				return errNotReady
			}
		}
		switch {
		case rec.kind == 'S':
			next.Release()
			next, _ = process.NewPin(rec.value) // the zero value, for one that is gone
			forked = true
		case rec.kind == 'R' && rec.value == l.main.PID && forked:
			if err := l.open(); err != nil {
				b.keepOne(l, next)
				return err
			}
			l.retire(l.spare)
			l.spare = next
			return nil
		case rec.kind == 'N' && rec.value == l.main.PID && !forked:
			return l.open()
		}
	}
}

// keepOne decides between two spares when the shell failed after a command:
// the one from before that command, since what broke the shell is in the other
// too.
func (b *bash) keepOne(l *life, next process.Pin) {
	if l.spare.PID == 0 {
		l.spare = next
		return
	}
	l.retire(next)
}

// fallBack replaces a shell that failed between two commands by its spare.
func (b *bash) fallBack(l *life) bool {
	// A scope that begins later than now is the shell alone.
	main := process.Scope{Agent: os.Getpid(), Shell: l.main.PID, Start: process.Now() + process.TicksPerSecond}
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	if err := main.Kill(ctx); err != nil || !b.takeOver(l) {
		return false
	}
	b.note("The shell failed after the command before. The session goes on as it was before that command.")
	return true
}

// takeOver lets the spare go on in the place of a shell that has ended.
func (b *bash) takeOver(l *life) bool {
	const patience = time.Second
	if l.spare.PID == 0 || l.spare.Ended(0) || !l.alone(patience) {
		return false
	}
	main, ok := b.config.Reaper.Adopt(l.spare)
	if !ok {
		return false
	}
	if err := l.setText(loop); err != nil {
		return false
	}
	if _, err := l.spareWake.Write([]byte("\n")); err != nil {
		return false
	}
	l.main = main
	l.spare.Release()
	return true
}

// lost gives up a life and says so in the next result.
func (b *bash) lost(why string) {
	b.life.dropPipes()
	b.life.close()
	b.life = nil
	b.note("The shell was started anew (" + why + "): variables, functions, the working directory and background jobs are lost, files are kept.")
}

func (b *bash) note(s string) {
	if b.notice != "" {
		b.notice += " "
	}
	b.notice += s
}
