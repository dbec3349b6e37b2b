package process

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Handle identifies one process: a pid alone may come to mean another.
type Handle struct {
	PID   int
	Start uint64
}

// Open returns a handle of the process that has pid now.
func Open(pid int) (Handle, error) {
	s, err := readStat(pid)
	if err != nil {
		return Handle{}, err
	}
	return Handle{PID: pid, Start: s.Start}, nil
}

// exists tells whether the process is there, if only as a zombie.
func (h Handle) exists() bool {
	s, err := readStat(h.PID)
	return err == nil && s.Start == h.Start
}

// Alive tells whether the process runs.
func (h Handle) Alive() bool {
	s, err := readStat(h.PID)
	return err == nil && s.Start == h.Start && !s.Zombie()
}

// Signal sends sig to this very process. A process that is gone is no error.
func (h Handle) Signal(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(h.PID, 0)
	if err == nil {
		defer unix.Close(fd)
	}
	// The pidfd, if there is one, now pins what is checked here.
	if !h.exists() {
		return nil
	}
	if err == nil {
		err = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) {
		err = unix.Kill(h.PID, sig) // a kernel or sandbox without pidfds
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}
