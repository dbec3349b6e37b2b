package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/process"
)

// maxState bounds what a shell may tell of itself.
const maxState = 8 << 20

var errNoSpare = errors.New("the shell has no spare that answers")

// snapshot asks the spare: it is a copy of the shell as it is between two
// commands, so that asking it leaves the shell alone.
func (b *bash) snapshot(ctx context.Context) (snapshot, error) {
	l, err := b.ready()
	if err != nil {
		return snapshot{}, err
	}
	state, err := l.ask()
	if err != nil {
		if l, err = b.renew(ctx); err != nil {
			return snapshot{}, err
		}
		state, err = l.ask()
	}
	if err != nil {
		return snapshot{}, fmt.Errorf("take the shell's state: %w", err)
	}
	dir := fmt.Sprintf("/proc/%d/cwd", l.spare.PID)
	return snapshot{path: b.path, script: launchBash, dir: dir, state: state}, nil
}

// ask lets the spare tell the shell's state through the memory file. One that
// doesn't answer is given up.
func (l *life) ask() (string, error) {
	const patience = time.Second
	if l.spare.Ended(0) || !l.alone(patience) {
		return "", errNoSpare
	}
	if err := l.setText(""); err != nil {
		return "", err
	}
	if _, err := l.spareWake.Write([]byte("state\n")); err != nil {
		return "", err
	}
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	for {
		select {
		case rec, ok := <-l.records:
			if ok && (rec.kind != 'P' || rec.value != l.spare.PID) {
				continue // of one that was given up
			}
			if ok {
				return l.told()
			}
		case <-timer.C:
		}
		return "", errors.Join(errNoSpare, l.dropSpare(patience))
	}
}

func (l *life) told() (string, error) {
	data, err := io.ReadAll(io.NewSectionReader(l.text, 0, maxState+1))
	if err != nil {
		return "", err
	}
	state, complete := bashState(string(data))
	if !complete || len(data) > maxState {
		return "", errors.New("what the shell exports is cut off or too large")
	}
	return state, nil
}

// dropSpare gives up a spare that is stuck, and what it has not read: nobody
// else is to take that for its own.
func (l *life) dropSpare(patience time.Duration) error {
	l.retire(l.spare)
	l.spare = process.Pin{}
	l.alone(patience)
	return drain(l.spareWake)
}

// renew makes the shell fork another spare: after a command that changes
// nothing and whose result nobody sees.
func (b *bash) renew(ctx context.Context) (*life, error) {
	status := b.status
	r, err := b.run(ctx, Command{Text: ":", Timeout: settleTime})
	if err != nil {
		return nil, err
	}
	l, err := b.ready()
	b.status = status
	b.notice = join(r.Notice, b.notice)
	return l, err
}
