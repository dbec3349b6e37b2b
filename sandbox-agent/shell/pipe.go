package shell

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// pipe makes a pipe of which the agent keeps one end, in *mine, and returns
// the other. Only the agent's end is non-blocking.
func pipe(mine **os.File, agentReads bool) (theirs *os.File, err error) {
	var fd [2]int
	if err := unix.Pipe2(fd[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	if agentReads {
		fd[0], fd[1] = fd[1], fd[0]
	}
	theirs = os.NewFile(uintptr(fd[0]), "pipe")
	if err := unix.SetNonblock(fd[1], true); err != nil {
		theirs.Close()
		unix.Close(fd[1])
		return nil, fmt.Errorf("pipe: %w", err)
	}
	*mine = os.NewFile(uintptr(fd[1]), "pipe")
	return theirs, nil
}

// drain empties the pipe that w writes to: what its reader has not read is not
// for who reads it next.
func drain(w *os.File) error {
	raw, err := w.SyscallConn()
	if err != nil {
		return err
	}
	var fd int
	var opened error
	err = raw.Control(func(end uintptr) {
		fd, opened = openPipe(fmt.Sprintf("/proc/self/fd/%d", end), unix.O_RDONLY)
	})
	if err := errors.Join(err, opened); err != nil {
		return err
	}
	defer unix.Close(fd)
	rest := make([]byte, 512)
	for {
		n, err := ignoringEINTR(func() (int, error) { return unix.Read(fd, rest) })
		if n <= 0 || err != nil {
			return nil // it is empty
		}
	}
}

var errNotPipe = errors.New("is not a pipe")

func openPipe(path string, mode int) (int, error) {
	fd, err := unix.Open(path, mode|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open pipe of the shell: %w", err)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFIFO {
		unix.Close(fd)
		return -1, fmt.Errorf("%s %w", path, errNotPipe)
	}
	return fd, nil
}

// widen spares a command that writes much, and the agent, most of the waiting
// for each other. It returns false for a user who has too many pages in pipes.
func widen(pipe int) bool {
	_, err := unix.FcntlInt(uintptr(pipe), unix.F_SETPIPE_SZ, largeChunk)
	return err == nil
}

func ignoringEINTR(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
