package shell

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/output"
)

// capture reads one stream of one command. A command that is soon over leaves
// its output in the pipe, where seal takes it. For a longer one pump starts a
// goroutine that reads as the command writes: into the recorder, which keeps
// what the result needs, then to the follower, which may take its time and so
// slows the command. After seal, what a leftover child writes is handed to
// leftovers, until the last writer has closed.
type capture struct {
	stream byte // one of wire.FrameStdout and wire.FrameStderr
	read   int  // non-blocking descriptors
	write  int  // held open until seal, so that no early end-of-file is seen

	recorder *output.Recorder
	follower Follower // nil for none
	left     *leftovers

	mu     sync.Mutex
	skip   int  // bytes at the beginning that are not the command's
	heavy  bool // the command writes much
	wide   bool // and its pipe was made wide
	since  time.Time
	recent int // bytes that were read since then
	pumped bool
	sealed bool
	rest   []byte // what seal read, for the follower

	// turn keeps what the follower is handed in order. It is taken before mu is
	// given back.
	turn sync.Mutex
}

// openCapture opens both ends of the pipe at path. The first skip bytes that
// come out of it are dropped.
func openCapture(path string, stream byte, skip int) (*capture, error) {
	read, err := openPipe(path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	write, err := openPipe(path, unix.O_WRONLY)
	if err != nil {
		unix.Close(read)
		return nil, err
	}
	return &capture{stream: stream, read: read, write: write, skip: skip}, nil
}

// newCapture returns a capture of a pipe of the agent's own.
func newCapture(stream byte) (*capture, error) {
	var fd [2]int
	if err := unix.Pipe2(fd[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	c := &capture{stream: stream, read: fd[0], write: fd[1]}
	if err := unix.SetNonblock(c.read, true); err != nil {
		c.discard()
		return nil, fmt.Errorf("pipe: %w", err)
	}
	return c, nil
}

// pump reads in a goroutine of its own from now on.
func (c *capture) pump() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pumped = true
	began := c.follower != nil && !c.sealed
	go c.loop(os.NewFile(uintptr(c.read), "output"), began)
}

func (c *capture) loop(f *os.File, began bool) {
	defer c.left.closed()
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	if began {
		c.follower.Began()
	}
	for {
		var p piece
		err := raw.Read(func(uintptr) bool {
			p, err = c.next()
			return !errors.Is(err, unix.EAGAIN)
		})
		if err != nil || p.n == 0 {
			break // end of file: no writer is left
		}
		nap := p.few && len(*p.buffer) == largeChunk
		c.hand(p)
		if nap {
			gather()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = -1
}

// piece is what was read at once. One of the command's own is the follower's
// next, and holds its turn.
type piece struct {
	buffer *[]byte
	from   int
	n      int
	late   bool // a leftover child wrote it
	few    bool // more would have fitted
}

// next reads once, and keeps what the command wrote.
func (c *capture) next() (piece, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := piece{buffer: takeChunk(c.heavy), late: c.sealed}
	var err error
	p.n, err = ignoringEINTR(func() (int, error) { return unix.Read(c.read, *p.buffer) })
	if p.n <= 0 {
		giveChunk(p.buffer)
		return piece{}, err
	}
	c.weigh(&p)
	if !p.late {
		p.from = c.keep((*p.buffer)[:p.n])
		if c.follower != nil {
			c.turn.Lock()
		}
	}
	return p, nil
}

// weigh tells by a piece whether the command writes much just now: a small chunk
// or more within a window. The caller holds c.mu.
func (c *capture) weigh(p *piece) {
	const window = 10 * time.Millisecond
	p.few = p.n < len(*p.buffer)/2
	c.recent += p.n
	if c.recent >= smallChunk && !c.heavy {
		c.wide = c.wide || widen(c.read)
		c.heavy = c.wide
	}
	if now := time.Now(); now.Sub(c.since) > window {
		c.heavy = c.heavy && c.recent >= smallChunk
		c.since, c.recent = now, 0
	}
}

// hand gives a piece to whom it belongs.
func (c *capture) hand(p piece) {
	defer giveChunk(p.buffer)
	b := (*p.buffer)[p.from:p.n]
	switch {
	case p.late:
		c.left.write(b)
	case c.follower != nil:
		defer c.turn.Unlock()
		c.follower.Output(c.stream, b)
	}
}

// keep records what the command wrote and returns how many bytes at the
// beginning were not the command's. The caller holds c.mu.
func (c *capture) keep(b []byte) (skipped int) {
	skipped = min(len(b), c.skip)
	c.skip -= skipped
	_, _ = c.recorder.Write(b[skipped:]) // never fails
	return skipped
}

// seal returns the stream up to now. What is in the pipe at this moment counts;
// what a leftover child adds meanwhile can't hold it up, and stays where it is.
func (c *capture) seal() output.Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read >= 0 {
		left, err := unix.IoctlGetInt(c.read, unix.TIOCINQ)
		for err == nil && left > 0 {
			var n int
			n, err = c.takeRest(left)
			left -= n
		}
	}
	c.sealed = true
	unix.Close(c.write)
	return c.recorder.Stream()
}

// takeRest reads at most so many bytes of a command that is over. The caller
// holds c.mu.
func (c *capture) takeRest(most int) (int, error) {
	b := takeChunk(false)
	defer giveChunk(b)
	n, err := ignoringEINTR(func() (int, error) { return unix.Read(c.read, (*b)[:min(most, len(*b))]) })
	if n <= 0 {
		return 0, errors.Join(err, errEnd)
	}
	skipped := c.keep((*b)[:n])
	if c.follower != nil {
		c.rest = append(c.rest, (*b)[skipped:n]...)
	}
	return n, nil
}

var errEnd = errors.New("nothing more can be read")

// deliver hands the follower what it has not had when the command ended.
func (c *capture) deliver() {
	c.turn.Lock()
	defer c.turn.Unlock()
	if len(c.rest) > 0 {
		c.follower.Output(c.stream, c.rest)
		c.rest = nil
	}
}

// settle closes a sealed pipe without writers, and has one that has some
// drained.
func (c *capture) settle() {
	if c.isPumped() {
		if c.hasWriter() {
			c.left.begin()
		}
		return
	}
	// A program that this process starts has a copy of everything, up to its exec.
	syscall.ForkLock.RLock()
	p, err := c.next()
	syscall.ForkLock.RUnlock()
	if p.n == 0 && !errors.Is(err, unix.EAGAIN) {
		unix.Close(c.read)
		c.left.closed()
		return
	}
	c.left.begin()
	if p.n > 0 {
		c.hand(p)
	}
	c.pump()
}

func (c *capture) isPumped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pumped
}

// hasWriter tells whether a child of the command still has the pipe open.
func (c *capture) hasWriter() bool {
	syscall.ForkLock.RLock() // as in settle
	defer syscall.ForkLock.RUnlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read < 0 {
		return false
	}
	poll := []unix.PollFd{{Fd: int32(c.read)}}
	_, err := ignoringEINTR(func() (int, error) { return unix.Poll(poll, 0) })
	return err == nil && poll[0].Revents&unix.POLLHUP == 0
}

// discard closes a capture whose command never began.
func (c *capture) discard() {
	if c != nil {
		unix.Close(c.read)
		unix.Close(c.write)
	}
}
