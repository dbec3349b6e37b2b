package background

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/process"
	"github.com/berth-dev/berth/sandbox-agent/supervise"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

const (
	// inputTime is how long a process may take to read what it is given.
	inputTime = 5 * time.Second
	// killTime bounds the kill of all that a process started.
	killTime = 4500 * time.Millisecond
)

// control finds a process that takes input and signals.
func (r *Registry) control(id string) (*entry, error) {
	e, err := r.find(id)
	if err == nil && e.kind == wire.KindJob {
		err = ErrJob
	}
	return e, err
}

// Input resizes a process's terminal, writes to it, and closes its input, as
// far as in asks for it, in this order. It returns how many bytes were taken: not
// all, and then the input stays open, when the process doesn't read.
func (r *Registry) Input(ctx context.Context, id string, in wire.ProcessInput) (written int, err error) {
	e, err := r.control(id)
	if err != nil {
		return 0, err
	}
	if in.Terminal != nil && !e.terminal {
		return 0, ErrNoTerminal
	}
	ctx, cancel := context.WithTimeout(ctx, inputTime)
	defer cancel()
	var file *os.File
	select {
	case file = <-e.in: // one at a time
	case <-e.done:
		return 0, ErrNotRunning
	case <-ctx.Done():
		return 0, nil // others still write
	}
	defer func() {
		e.in <- file
		if !e.running.Load() {
			e.closeInput()
		}
	}()
	switch {
	case !e.running.Load():
		return 0, ErrNotRunning
	case file == nil:
		return 0, ErrInputClosed
	}
	deadline, _ := ctx.Deadline()
	return e.feed(&file, in, deadline)
}

// feed acts on in. It sets file to nil when that is closed.
func (e *entry) feed(file **os.File, in wire.ProcessInput, deadline time.Time) (written int, err error) {
	f := *file
	if in.Terminal != nil {
		if err := resize(f, *in.Terminal); err != nil {
			return 0, e.explain(err)
		}
	}
	if err := f.SetWriteDeadline(deadline); err != nil {
		return 0, e.explain(err)
	}
	if in.Data != "" {
		written, err = f.WriteString(in.Data)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return written, nil
		case err != nil && written == 0:
			return 0, e.explain(err)
		case err != nil:
			return written, nil // the next will be told
		}
	}
	switch {
	case !in.EOF:
	case !e.terminal:
		f.Close()
		*file = nil
	default:
		if err := typeEOF(f); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return written, e.explain(err)
		}
	}
	return written, nil
}

// explain says why a process took no input.
func (e *entry) explain(err error) error {
	switch {
	case !e.running.Load():
		return ErrNotRunning
	case errors.Is(err, unix.EPIPE), errors.Is(err, unix.EIO), errors.Is(err, os.ErrClosed):
		return ErrInputClosed
	}
	return fmt.Errorf("write input: %w", err)
}

// typeEOF types the terminal's end-of-file character.
func typeEOF(master *os.File) error {
	raw, err := master.SyscallConn()
	if err != nil {
		return err
	}
	var termios *unix.Termios
	var failure error
	err = raw.Control(func(fd uintptr) { termios, failure = unix.IoctlGetTermios(int(fd), unix.TCGETS) })
	if err := errors.Join(err, failure); err != nil {
		return err
	}
	_, err = master.Write([]byte{termios.Cc[unix.VEOF]})
	return err
}

// closeInput lets go of standard input. The terminal is closed as the output.
func (e *entry) closeInput() {
	if e.process == nil || e.terminal {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case file := <-e.in:
		if file != nil {
			file.Close()
		}
		e.in <- nil
	default: // someone writes: with the reader gone, that fails at once
	}
}

// Signal sends sig to the group of a process; KILL to all that it started, also
// when it has ended.
func (r *Registry) Signal(ctx context.Context, id string, sig unix.Signal) error {
	e, err := r.control(id)
	if err != nil {
		return err
	}
	if sig != unix.SIGKILL {
		err := e.process.SignalGroup(sig)
		if errors.Is(err, supervise.ErrEnded) { // its last output may still be on the way
			return ErrNotRunning
		}
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	family := process.Family{Mark: e.mark}
	select {
	case <-e.process.Ended(): // the number may be another's by now
	default:
		family.Leader = e.process.PID
	}
	if err := family.Kill(ctx); err != nil {
		return fmt.Errorf("processes may still run: %w", err)
	}
	select {
	case <-e.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the process may still run: %w", ctx.Err())
	}
}
