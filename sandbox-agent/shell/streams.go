package shell

import (
	"context"
	"io"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/execlog"
	"github.com/berth-dev/berth/sandbox-agent/output"
)

// streams are what one command writes.
type streams struct {
	stdout, stderr *capture
	settled        chan struct{} // closed when it is known what is left over
}

func newStreams(stdout, stderr *capture) *streams {
	return &streams{stdout: stdout, stderr: stderr, settled: make(chan struct{})}
}

// begin comes before the command does.
func (s *streams) begin(c Command, open func(command string) io.WriteCloser) {
	left := &leftovers{command: c.Text, open: open, streams: 2}
	s.stdout.recorder = output.NewRecorder(c.OutputBytes, c.log(execlog.Stdout))
	s.stderr.recorder = output.NewRecorder(c.OutputBytes, c.log(execlog.Stderr))
	for _, capture := range []*capture{s.stdout, s.stderr} {
		capture.follower, capture.left = c.Follower, left
	}
}

func (c Command) log(stream string) func() *execlog.Log {
	if c.Logs == nil {
		return nil
	}
	return func() *execlog.Log { return c.Logs.Open(stream) }
}

func (s *streams) pump() {
	s.stdout.pump()
	s.stderr.pump()
}

// seal puts the streams into r, as they are now.
func (s *streams) seal(r *Result) {
	r.Stdout, r.Stderr, r.streams = s.stdout.seal(), s.stderr.seal(), s
}

// settle comes once no process of the agent's own has the pipes open.
func (s *streams) settle() {
	s.stdout.settle()
	s.stderr.settle()
	close(s.settled)
}

func (s *streams) discard() {
	if s != nil {
		s.stdout.discard()
		s.stderr.discard()
	}
}

// Settled waits until it is known what the last command that ended has left
// behind. It waits for no command.
func (s *Shell) Settled(ctx context.Context) error {
	last := s.ended.Load()
	if last == nil {
		return nil
	}
	select {
	case <-last.settled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leftovers takes what the children of one command write after its end.
type leftovers struct {
	command string
	open    func(command string) io.WriteCloser

	mu      sync.Mutex
	begun   bool
	to      io.WriteCloser // nil: drop it
	streams int            // that still may give something
}

func (l *leftovers) begin() (to io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.begun && l.open != nil {
		l.to = l.open(l.command)
	}
	l.begun = true
	if l.to == nil {
		return nil
	}
	return l.to
}

func (l *leftovers) write(p []byte) {
	if to := l.begin(); to != nil {
		_, err := to.Write(p)
		_ = err // the child goes on in any case
	}
}

// closed comes once for each stream.
func (l *leftovers) closed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams--; l.streams == 0 && l.to != nil {
		l.to.Close()
	}
}

// Sizes of what is read at once. The large one is also that of the pipe of a
// command that writes much.
const (
	smallChunk = 64 << 10
	largeChunk = 512 << 10
)

var (
	smallChunks = sync.Pool{New: func() any { b := make([]byte, smallChunk); return &b }}
	largeChunks = sync.Pool{New: func() any { b := make([]byte, largeChunk); return &b }}
)

func takeChunk(large bool) *[]byte {
	if large {
		return largeChunks.Get().(*[]byte)
	}
	return smallChunks.Get().(*[]byte)
}

func giveChunk(b *[]byte) {
	if len(*b) == largeChunk {
		largeChunks.Put(b)
		return
	}
	smallChunks.Put(b)
}

// gather lets a command fill its pipe a little. A reader that is woken by each
// write of a few kilobytes takes most of the time for itself, and a timer of the
// runtime sleeps a millisecond at least.
func gather() {
	nap := unix.NsecToTimespec((200 * time.Microsecond).Nanoseconds())
	_ = unix.Nanosleep(&nap, nil) // cut short by a signal: as good
}
