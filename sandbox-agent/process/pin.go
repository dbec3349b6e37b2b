package process

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// Pin holds on to one process at the cost of a descriptor, without a look into
// /proc. The zero value is no process.
type Pin struct {
	PID    int
	fd     int    // 0: none, handle stands in
	handle Handle // without pidfds
}

// NewPin returns a pin of the process that has pid now. Where the kernel or a
// sandbox has no pidfds, pid and start time stand in.
func NewPin(pid int) (Pin, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		return Pin{PID: pid, fd: fd}, nil
	}
	if errors.Is(err, unix.ESRCH) {
		return Pin{}, err
	}
	h, err := Open(pid)
	return Pin{PID: pid, handle: h}, err
}

// PinOf returns a pin of the process that has pid, by a pidfd that whoever started
// it got of the kernel. The pin owns fd.
func PinOf(pid, fd int) Pin { return Pin{PID: pid, fd: fd} }

// Release lets go of the process.
func (p *Pin) Release() {
	if p.fd > 0 {
		unix.Close(p.fd)
	}
	*p = Pin{}
}

// Kill sends KILL. A process that is gone is no error.
func (p Pin) Kill() error { return p.Signal(unix.SIGKILL) }

// Signal sends sig. A process that is gone is no error.
func (p Pin) Signal(sig unix.Signal) error {
	switch {
	case p.PID == 0:
		return nil
	case p.fd == 0:
		return p.handle.Signal(sig)
	}
	err := unix.PidfdSendSignal(p.fd, sig, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// Ended waits until the process has ended, for at most limit. It returns
// whether it has.
func (p Pin) Ended(limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	for {
		left := max(0, time.Until(deadline))
		if p.PID == 0 || p.fd == 0 && !p.handle.Alive() {
			return true
		}
		if p.fd > 0 {
			poll := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
			n, err := unix.Poll(poll, int((left+time.Millisecond-1)/time.Millisecond))
			if n > 0 {
				return true
			}
			if err != nil && !errors.Is(err, unix.EINTR) {
				return false
			}
		}
		if left == 0 {
			return false
		}
		if p.fd == 0 {
			<-time.After(min(left, settle))
		}
	}
}

// SignalGroup sends sig to the process group that the process leads. It returns
// ESRCH when the process is gone: the group's number may be another's then.
func (p Pin) SignalGroup(sig unix.Signal) error {
	if !p.exists() {
		return unix.ESRCH
	}
	return unix.Kill(-p.PID, sig)
}

// exists tells whether the process is there, if only as a zombie.
func (p Pin) exists() bool {
	if p.fd == 0 {
		return p.PID != 0 && p.handle.exists()
	}
	return unix.PidfdSendSignal(p.fd, 0, nil, 0) == nil
}
