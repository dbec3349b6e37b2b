// Package initproc makes the agent a PID 1 that nothing inside the container
// ends or inspects, and gives one that was started by hand a PID namespace of
// its own.
package initproc

import (
	"fmt"
	"math"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Protect makes this process non-dumpable, so that processes of the same user
// can neither trace it nor open its /proc/PID/fd, and deaf to every signal but
// TERM, which arrives on the returned channel. Without a handler the Go
// runtime would die of several signals even as PID 1.
func Protect() (<-chan os.Signal, error) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become non-dumpable: %w", err)
	}
	// Nothing that this process inherited is for a shell.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil && err != unix.ENOSYS && err != unix.EINVAL {
		return nil, fmt.Errorf("mark descriptors close-on-exec: %w", err)
	}
	ignored := make(chan os.Signal, 1) // never read: a full channel drops
	const last = 64
	for n := syscall.Signal(1); n <= last; n++ {
		switch n {
		case unix.SIGTERM, unix.SIGCHLD, unix.SIGURG, unix.SIGKILL, unix.SIGSTOP:
			// TERM is the way out, CHLD the reaper's, URG the runtime's.
		default:
			signal.Notify(ignored, n)
		}
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, unix.SIGTERM)
	return term, nil
}

// IsInit tells whether this process is its PID namespace's first.
func IsInit() bool { return os.Getpid() == 1 }
