package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/process"
)

// settleTime is how long a shell may take to be ready for its next command:
// much more than a fork, also on a machine under load.
const settleTime = 5 * time.Second

// settleSoon prepares the shell for the next command while the caller already
// has its result. Then the shell itself has let go of ended, the command's streams:
// whoever still has them open was left behind by it.
func (b *bash) settleSoon(leftover *record, ended *streams) {
	b.settled = make(chan struct{})
	go func() {
		defer close(b.settled)
		defer ended.settle()
		if b.life == nil {
			b.start()
			return
		}
		b.settle(leftover)
	}()
}

// maxFallBacks is how often in a row a spare goes on for a shell that failed after
// its command. A spare that inherited the damage, such as a descriptor of the
// shell's own that a command has overwritten, would fail after each, and nothing
// that the session does would last.
const maxFallBacks = 2

// settle waits until the shell has forked its spare and made its pipes. A
// shell that doesn't get there is replaced by a spare; when that fails too,
// the life is over.
func (b *bash) settle(pending *record) {
	const attempts = 3
	if err := b.config.RestoreLimits(); err != nil {
		b.note(fmt.Sprintf("The agent can't go on for long: %v.", err))
	}
	l, fellBack := b.life, false
	for range attempts {
		if b.failure = b.prepare(l, pending); b.failure == nil {
			if !fellBack {
				b.fallBacks = 0
			}
			b.remember(l)
			return
		}
		pending = nil
		if b.endShell(l) != nil || b.fallBacks == maxFallBacks || !b.fallBack(l) {
			break
		}
		if !fellBack {
			fellBack = true
			b.fallBacks++
		}
	}
	b.fallBacks = 0
	b.lost("it failed between two commands")
}

var errNotReady = errors.New("the shell ended, or got stuck, before it was ready for the next command")

// prepare waits until l is ready for a command, and opens the pipes.
func (b *bash) prepare(l *life, pending *record) error {
	next, err := b.round(l, pending)
	if err == nil {
		err = l.open()
	}
	switch {
	case err != nil && next != nil:
		l.keepOne(*next)
		fallthrough
	case err != nil:
		return err
	case next != nil:
		l.retire(l.spare)
		l.spare, l.mark = *next, next.PID
	default:
		l.mark = process.LastPID() // the spare is older than what the call left
	}
	b.config.exposure.idle(l.main.PID, l.spare.PID)
	return nil
}

// round waits for the records S and R, or N. It returns the spare that was
// forked, nil for the one from before.
func (b *bash) round(l *life, pending *record) (next *process.Pin, err error) {
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	stuck := time.NewTicker(stuckTime)
	defer stuck.Stop()
	room := b.room(l)
	for {
		var rec record
		if pending != nil {
			rec, pending = *pending, nil
		} else {
			select {
			case rec = <-l.records:
			case <-l.main.Exited():
				return next, errNotReady
			case <-timer.C:
				return next, errNotReady
			case <-stuck.C:
				if next == nil && room.make() {
					timer.Reset(settleTime)
				}
			}
		}
		switch {
		case rec.kind == 'S':
			if next != nil {
				l.retire(*next) // of a fork that was killed, and made again
			}
			pin, _ := process.NewPin(rec.value) // the zero value, for one that is gone
			next = &pin
		case rec.value != l.main.PID: // of a shell before
		case rec.kind == 'R' && next != nil, rec.kind == 'N' && next == nil:
			return next, nil
		}
	}
}

// keepOne decides between two spares when the shell failed after a command: the
// one from before that command, since what broke the shell is in the other too.
func (l *life) keepOne(next process.Pin) {
	switch l.spare.PID {
	case 0:
		l.spare = next
	case next.PID: // told twice
		next.Release()
	default:
		l.retire(next)
	}
}

// fallBack replaces a shell that failed between two commands by its spare.
func (b *bash) fallBack(l *life) bool {
	if !b.takeOver(l) {
		return false
	}
	b.note("The shell failed after the command before. The session goes on as it was before that command.")
	return true
}

// endShell kills a shell that failed, and nothing that it started: it may be
// stuck rather than gone.
func (b *bash) endShell(l *life) error {
	// A scope that begins later than now is the shell alone.
	shell := process.Scope{Agent: os.Getpid(), Shell: l.main.PID, Start: process.Now() + process.TicksPerSecond}
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	return shell.Kill(ctx)
}

// takeOver lets the spare go on in the place of a shell that has ended.
func (b *bash) takeOver(l *life) bool {
	const patience = time.Second
	l.rest() // one more spare may have been forked
	if l.spare.PID == 0 || l.spare.Ended(0) || !l.alone(patience) {
		return false
	}
	main, ok := b.config.Reaper.Adopt(l.spare)
	if !ok {
		return false
	}
	// A command may have stopped it.
	if err := l.spare.Signal(unix.SIGCONT); err != nil {
		return false
	}
	// A command that was killed at once may not have been begun.
	if err := drain(l.wake); err != nil {
		return false
	}
	l.deepen(l.spare.PID)
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
