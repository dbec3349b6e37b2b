package process

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Reaper waits for every child of this process, its own and adopted orphans.
// Nothing else in the process may wait for children (os/exec does).
type Reaper struct {
	mu      sync.Mutex // also held while children are reaped, so that a pid looked at under it stays its own
	watched map[int]*Child
	signals chan os.Signal
	done    chan struct{}

	processors *unix.CPUSet // of children that stand back
}

// Child is a process whose end is watched.
type Child struct {
	PID    int
	exited chan struct{}
	status unix.WaitStatus
}

// Exited is closed when the child was reaped.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// ExitCode is the child's status as a shell gives it: 128+n for signal n. It
// is valid once Exited is closed.
func (c *Child) ExitCode() int {
	if c.status.Signaled() {
		return 128 + int(c.status.Signal())
	}
	return c.status.ExitStatus()
}

// NewReaper starts reaping, and makes this process the one that orphans among
// its descendants fall to.
func NewReaper() (*Reaper, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become subreaper: %w", err)
	}
	r := &Reaper{watched: map[int]*Child{}, signals: make(chan os.Signal, 1), done: make(chan struct{})}
	signal.Notify(r.signals, unix.SIGCHLD)
	go r.loop()
	return r, nil
}

// Close stops reaping.
func (r *Reaper) Close() {
	signal.Stop(r.signals)
	close(r.done)
}

func (r *Reaper) loop() {
	for {
		r.reap()
		select {
		case <-r.signals:
		case <-r.done:
			return
		}
	}
}

func (r *Reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if pid <= 0 || err != nil {
			return
		}
		if c, ok := r.watched[pid]; ok {
			delete(r.watched, pid)
			c.status = status
			close(c.exited)
		}
	}
}

// Start runs a program. Its error is one of fork and exec.
func (r *Reaper) Start(path string, argv []string, attr *syscall.ProcAttr) (*Child, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		if errors.Is(err, unix.EAGAIN) {
			err = fmt.Errorf("the limit of processes is reached: %w", err)
		}
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return r.watch(pid), nil
}

// Full tells whether processes can't be made at present, as far as one that
// comes and goes can tell.
func (r *Reaper) Full() bool {
	const looks = 4 // in a table that is filled again and again
	for range looks {
		if _, err := r.Start("/proc/self/no-such-program", nil, &syscall.ProcAttr{}); errors.Is(err, unix.EAGAIN) {
			return true
		}
	}
	return false
}

// Adopt watches an orphan that fell, or is about to fall, to this process. It
// returns false when p is gone.
func (r *Reaper) Adopt(p Pin) (*Child, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !p.exists() {
		return nil, false
	}
	return r.watch(p.PID), true
}

// Forget ends the watch over a child that another process has waited for.
func (r *Reaper) Forget(c *Child) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watched[c.PID] == c {
		delete(r.watched, c.PID)
	}
}

func (r *Reaper) watch(pid int) *Child {
	c := &Child{PID: pid, exited: make(chan struct{})}
	r.watched[pid] = c
	return c
}
