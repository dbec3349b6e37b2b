package process

import (
	"bytes"
	"errors"
	"os"
	"strconv"

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

// Resident is how many bytes of anonymous memory the process has, shared with
// others since a fork or its own. 0 when it is gone.
func (h Handle) Resident() uint64 {
	content, err := os.ReadFile("/proc/" + strconv.Itoa(h.PID) + "/statm")
	f := bytes.Fields(content) // in pages: size, resident, shared, ...
	if err != nil || len(f) < 3 {
		return 0
	}
	resident, err1 := strconv.ParseUint(string(f[1]), 10, 64)
	shared, err2 := strconv.ParseUint(string(f[2]), 10, 64)
	if err1 != nil || err2 != nil || shared > resident {
		return 0
	}
	return (resident - shared) * uint64(os.Getpagesize())
}

// Private is how many bytes of memory would be free without the process. It is
// dear: the kernel looks at each page. Where that can't be told, it is Resident.
func (h Handle) Private() uint64 {
	content, err := os.ReadFile("/proc/" + strconv.Itoa(h.PID) + "/smaps_rollup")
	if err != nil {
		return h.Resident()
	}
	var kb uint64
	for line := range bytes.Lines(content) {
		if f := bytes.Fields(line); len(f) == 3 && bytes.HasPrefix(f[0], []byte("Private_")) {
			n, err := strconv.ParseUint(string(f[1]), 10, 64)
			if err != nil {
				return h.Resident()
			}
			kb += n
		}
	}
	return kb << 10
}
