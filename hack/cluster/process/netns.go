package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// InNetns calls f on a thread that is in the network namespace behind the path,
// such as /proc/PID/ns/net. Sockets that f itself makes stay in that namespace.
func InNetns(path string, f func() error) error {
	target, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening a network namespace: %w", err)
	}
	defer target.Close()
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Setns(int(target.Fd()), unix.CLONE_NEWNET); err != nil {
			result <- fmt.Errorf("entering network namespace %s: %w", path, err)
			return
		}
		result <- f()
	}()
	return <-result
}

// DialIn returns a Dial that connects from the network namespace behind the path.
// Addresses must be numeric: a name would be looked up elsewhere.
func DialIn(path string) Dial {
	return func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		nsErr := InNetns(path, func() error {
			// A numeric address is dialled on the calling goroutine, so its
			// socket is made in this thread's namespace.
			conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
			return nil
		})
		return conn, errors.Join(nsErr, err)
	}
}
