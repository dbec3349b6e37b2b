package shell

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/output"
)

const chunk = 64 << 10

var chunks = sync.Pool{New: func() any { b := make([]byte, chunk); return &b }}

// capture reads one stream of one command. A goroutine of its own reads as
// the command writes; seal takes what is there when the command has ended.
// From then on what a leftover child writes is read and dropped, so that the
// child neither blocks nor dies, until the last writer has closed.
type capture struct {
	read   *os.File
	write  *os.File // held open until seal, so that no early end-of-file is seen
	mu     sync.Mutex
	buffer *output.Buffer
	skip   int // bytes at the beginning that are not the command's
	sealed bool
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
		read.Close()
		return nil, err
	}
	return &capture{read: read, write: write, skip: skip}, nil
}

var errNotPipe = errors.New("is not a pipe")

func openPipe(path string, mode int) (*os.File, error) {
	fd, err := unix.Open(path, mode|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open pipe of the shell: %w", err)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFIFO {
		unix.Close(fd)
		return nil, fmt.Errorf("%s %w", path, errNotPipe)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// start keeps at most limit bytes from now on.
func (c *capture) start(limit int) {
	c.buffer = output.NewBuffer(limit)
	go c.loop()
}

func (c *capture) loop() {
	defer c.read.Close()
	raw, err := c.read.SyscallConn()
	if err != nil {
		return
	}
	for {
		var n int
		err := raw.Read(func(fd uintptr) bool {
			n, err = c.take(int(fd))
			return !errors.Is(err, unix.EAGAIN)
		})
		if err != nil || n <= 0 {
			return // end of file: no writer is left
		}
	}
}

// take reads once and keeps what the command wrote.
func (c *capture) take(fd int) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := chunks.Get().(*[]byte)
	defer chunks.Put(b)
	n, err := ignoringEINTR(func() (int, error) { return unix.Read(fd, *b) })
	if n > 0 && !c.sealed {
		k := min(n, c.skip)
		c.skip -= k
		c.buffer.Write((*b)[k:n])
	}
	return n, err
}

// seal returns the stream up to now. What is in the pipe at this moment counts;
// what a leftover child adds meanwhile can't hold it up.
func (c *capture) seal() output.Stream {
	if raw, err := c.read.SyscallConn(); err == nil {
		// An error means that the loop saw the end: all of it was taken.
		_ = raw.Control(func(fd uintptr) {
			left, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
			for err == nil && left > 0 {
				var n int
				n, err = c.take(int(fd))
				left -= n
				if n <= 0 {
					return
				}
			}
		})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sealed = true
	c.write.Close()
	return c.buffer.Stream()
}

// discard closes a capture that was never started.
func (c *capture) discard() {
	if c != nil {
		closeAll(c.read, c.write)
	}
}

// feed writes data into the pipe at path, after dropping what is in it, until
// the reader is gone or the returned function is called.
func feed(path, data string) (stop func(), err error) {
	drain, err := openPipe(path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer drain.Close()
	w, err := openPipe(path, unix.O_WRONLY)
	if err != nil {
		return nil, err
	}
	var first [1]byte
	if _, err := drain.Read(first[:]); err != nil {
		w.Close()
		return nil, fmt.Errorf("prepare standard input: %w", err)
	}
	go func() {
		defer w.Close()
		_, err := io.WriteString(w, data)
		_ = err // a command need not read its input
	}()
	return func() { w.Close() }, nil
}

func ignoringEINTR(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}
