package shell

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/output"
)

const chunk = 64 << 10

var chunks = sync.Pool{New: func() any { b := make([]byte, chunk); return &b }}

// capture reads one stream of one command. A command that is soon over leaves
// its output in the pipe, where seal takes it. For a longer one pump starts a
// goroutine that reads as the command writes. After seal, what a leftover
// child writes is read and dropped, so that the child neither blocks nor dies,
// until the last writer has closed.
type capture struct {
	read  int // non-blocking descriptors
	write int // held open until seal, so that no early end-of-file is seen

	mu     sync.Mutex
	buffer *output.Buffer
	skip   int // bytes at the beginning that are not the command's
	sealed bool
	pumped bool
}

// openCapture opens both ends of the pipe at path. The first skip bytes that
// come out of it are dropped.
func openCapture(path string, skip int) (*capture, error) {
	read, err := openPipe(path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	write, err := openPipe(path, unix.O_WRONLY)
	if err != nil {
		unix.Close(read)
		return nil, err
	}
	return &capture{read: read, write: write, skip: skip}, nil
}

// newCapture returns a capture of a pipe of the agent's own.
func newCapture() (*capture, error) {
	var fd [2]int
	if err := unix.Pipe2(fd[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	c := &capture{read: fd[0], write: fd[1]}
	if err := unix.SetNonblock(c.read, true); err != nil {
		c.discard()
		return nil, fmt.Errorf("pipe: %w", err)
	}
	return c, nil
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

// keep sets how many bytes are kept. It comes before the command begins.
func (c *capture) keep(limit int) { c.buffer = output.NewBuffer(limit) }

// pump reads in a goroutine of its own from now on.
func (c *capture) pump() {
	c.pumped = true
	go c.loop(os.NewFile(uintptr(c.read), "output"))
}

func (c *capture) loop(read *os.File) {
	defer read.Close()
	raw, err := read.SyscallConn()
	if err != nil {
		return
	}
	for {
		var n int
		err := raw.Read(func(uintptr) bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			n, err = c.take()
			return !errors.Is(err, unix.EAGAIN)
		})
		if err != nil || n <= 0 {
			break // end of file: no writer is left
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = -1
}

// take reads once and keeps what the command wrote. The caller holds c.mu.
func (c *capture) take() (int, error) {
	b := chunks.Get().(*[]byte)
	defer chunks.Put(b)
	n, err := ignoringEINTR(func() (int, error) { return unix.Read(c.read, *b) })
	if n > 0 && !c.sealed {
		k := min(n, c.skip)
		c.skip -= k
		_, _ = c.buffer.Write((*b)[k:n]) // never fails
	}
	return n, err
}

// seal returns the stream up to now. What is in the pipe at this moment counts;
// what a leftover child adds meanwhile can't hold it up.
func (c *capture) seal() output.Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	ended := c.read < 0
	if !ended {
		left, err := unix.IoctlGetInt(c.read, unix.TIOCINQ)
		for n := 0; err == nil && left > 0; left -= n {
			if n, err = c.take(); n <= 0 {
				break
			}
		}
	}
	c.sealed = true
	unix.Close(c.write)
	if !c.pumped {
		c.finish()
	}
	return c.buffer.Stream()
}

// finish closes a pipe without writers, or lets a goroutine drain it: a
// leftover child that never pauses would keep this one for ever. The caller
// holds c.mu.
func (c *capture) finish() {
	if n, err := c.take(); n > 0 || errors.Is(err, unix.EAGAIN) {
		c.pump()
		return
	}
	unix.Close(c.read)
	c.read = -1
}

// discard closes a capture whose command never began.
func (c *capture) discard() {
	if c != nil {
		unix.Close(c.read)
		unix.Close(c.write)
	}
}

func ignoringEINTR(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
