package serve

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// inheritedSocket is the descriptor of the socket that --session-dir comes with.
const inheritedSocket = 3

// inherited returns that socket as a file.
func inherited() *os.File { return os.NewFile(inheritedSocket, "inherited socket") }

func listen(o Options) (net.Listener, error) {
	if o.SessionDir != "" {
		file := inherited()
		defer file.Close()
		l, err := net.FileListener(file)
		if err != nil {
			return nil, fmt.Errorf("--session-dir: descriptor %d is no listening socket: %w", inheritedSocket, err)
		}
		return l, nil
	}
	if o.Unix == "" {
		return net.Listen("tcp", o.Listen)
	}
	if err := removeStale(o.Unix); err != nil {
		return nil, err
	}
	// Only this user may connect.
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	return net.Listen("unix", o.Unix)
}

// removeStale removes a socket that nobody listens on any more, and nothing
// else.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil // Listen says what is wrong, if anything is
	}
	if info.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("--unix: %s exists and is not a socket", path)
	}
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return fmt.Errorf("--unix: another process listens on %s", path)
	}
	return os.Remove(path)
}
