package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Identity names one process for good: process IDs are used again, the pair of
// an ID and its start time is not.
type Identity struct {
	PID int `json:"pid"`
	// Start is the process's start in clock ticks since the machine's (field 22
	// of /proc/PID/stat).
	Start uint64 `json:"start"`
}

// Self is the identity of this process as the mount at /proc shows it: that of
// the PID namespace that /proc was mounted in.
func Self() (Identity, error) {
	target, err := os.Readlink("/proc/self")
	if err != nil {
		return Identity{}, err
	}
	pid, err := strconv.Atoi(target)
	if err != nil {
		return Identity{}, fmt.Errorf("/proc/self points to %q", target)
	}
	return Identify(pid)
}

// Identify returns the identity of the process that has this ID now. It fails
// with fs.ErrNotExist when there is none; one that ended and only waits for its
// parent to notice is none.
func Identify(pid int) (Identity, error) {
	st, err := readStat(pid)
	if err == nil && (st.state == 'Z' || st.state == 'X') {
		err = fs.ErrNotExist
	}
	return Identity{PID: pid, Start: st.start}, err
}

// Write keeps the identity in a file, at once and whole.
func (id Identity) Write(path string) error {
	data, err := json.Marshal(id)
	if err != nil {
		return err
	}
	return WriteFile(path, append(data, '\n'), 0o644)
}

// ReadIdentity reads what Write wrote.
func ReadIdentity(path string) (Identity, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Identity{}, err
	}
	var id Identity
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&id); err != nil {
		return Identity{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return id, nil
}

// Alive says whether this very process still runs.
func (id Identity) Alive() bool {
	now, err := Identify(id.PID)
	return err == nil && now == id
}

// killWait is how long the kernel may take to end a killed process: for PID 1 of
// a PID namespace, all processes in it.
const killWait = 30 * time.Second

// Kill ends the process and waits until it's gone. It's no error if it's gone
// already, and no other process is ever hit.
func (id Identity) Kill(ctx context.Context) error {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening process %d: %w", id.PID, err)
	}
	defer unix.Close(fd)
	if !id.Alive() { // checked behind the descriptor: it can't become another's now
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("killing process %d: %w", id.PID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, killWait)
	defer cancel()
	return waitPidfd(ctx, fd, id.PID)
}

// While returns a context that also ends, with what as its cause, when the
// process does.
func (id Identity) While(parent context.Context, what error) (context.Context, context.CancelFunc, error) {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err != nil {
		return nil, nil, errors.Join(what, err)
	}
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		defer unix.Close(fd)
		if waitPidfd(ctx, fd, id.PID) == nil {
			cancel(what)
		}
	}()
	if !id.Alive() {
		cancel(what)
	}
	return ctx, func() { cancel(context.Canceled) }, nil
}

func waitPidfd(ctx context.Context, fd, pid int) error {
	const slice = 100 // milliseconds between looks at the context
	for {
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(polled, slice)
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("waiting for process %d: %w", pid, err)
		case n > 0:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("process %d was killed but is still there: %w", pid, ctx.Err())
		}
	}
}

// WriteFile writes a file that is never seen half-written.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".tmp-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // gone already after the rename
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Chmod(mode), tmp.Close())
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return os.Rename(tmp.Name(), path)
}
