package background

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/spool"
	"github.com/berth-dev/berth/sandbox-agent/supervise"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// entry is one process or job.
type entry struct {
	id       string
	kind     string
	command  string            // its beginning
	digest   [sha256.Size]byte // of the whole
	terminal bool
	started  time.Time
	mark     string             // of what it starts
	process  *supervise.Process // nil: a job
	in       chan *os.File      // holds standard input or the terminal; nil in it once that is closed
	done     chan struct{}      // closed when it has ended

	mu      sync.Mutex
	out     *os.File // the agent's end of pipe or terminal, nil at end-of-file
	ring    ring
	changed chan struct{} // closed at the next change; nil while nobody waits
	running atomic.Bool   // changes under mu
	code    *int
	unknown bool // how it ended
	ended   time.Time
	// cancelled: it was asked to end while it ran, and then it was killed.
	cancelled bool
}

func newEntry(id, kind, command string, spools []string) *entry {
	e := &entry{
		id: id, kind: kind, command: beginning(command), digest: sha256.Sum256([]byte(command)), started: time.Now(),
		in: make(chan *os.File, 1), done: make(chan struct{}), ring: ring{size: wire.ProcessOutputBytes},
	}
	e.running.Store(true)
	// Without a file its output is dropped, which its notice says.
	e.ring.file, _ = spool.Create(spools)
	return e
}

// beginning cuts a command to what is shown of it.
func beginning(command string) string {
	i := min(len(command), wire.MaxProcessCommand)
	for i < len(command) && i > 0 && !utf8.RuneStart(command[i]) {
		i--
	}
	return command[:i]
}

func (e *entry) view() wire.Process {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := wire.Process{
		ID: e.id, Kind: e.kind, Command: e.command, Terminal: e.terminal, Running: e.running.Load(), ExitCode: e.code,
		Started: e.started.UTC(), OutputStart: e.ring.start(), OutputEnd: e.ring.end, Notice: e.notice(),
	}
	if !p.Running {
		ended := e.ended.UTC()
		p.Ended, p.Cancelled = &ended, e.cancelled
	}
	return p
}

// notice says what else happened. The caller holds e.mu.
func (e *entry) notice() string {
	var all []string
	if e.process != nil && e.process.Orphaned() {
		all = append(all, "The supervisor of background processes was killed: what this one starts may end with a command's time-out.")
	}
	if e.unknown {
		all = append(all, "It was killed together with its supervisor: its exit code is not known.")
	}
	if e.ring.dropped > 0 {
		all = append(all, fmt.Sprintf("%d bytes of output were dropped: there was no space on the disk.", e.ring.dropped))
	}
	return strings.Join(all, " ")
}

// tell wakes those who wait for a change. The caller holds e.mu.
func (e *entry) tell() {
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
}

// wait returns what is closed at the next change. The caller holds e.mu.
func (e *entry) wait() <-chan struct{} {
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	return e.changed
}

const chunk = 32 << 10

var chunks = sync.Pool{New: func() any { b := make([]byte, chunk); return &b }}

// pump carries output over until nobody is left who could write any. The
// process never waits for a reader.
func (e *entry) pump(out *os.File, eof chan<- struct{}) {
	defer close(eof)
	raw, err := out.SyscallConn()
	for err == nil {
		var n int
		var failure error
		err = raw.Read(func(fd uintptr) bool {
			n, failure = e.take(int(fd))
			return !errors.Is(failure, unix.EAGAIN)
		})
		if n <= 0 { // the end of a pipe, or EIO of a terminal
			break
		}
	}
	e.closeOutput()
}

// take carries over what one read gives.
func (e *entry) take(fd int) (int, error) {
	b := chunks.Get().(*[]byte)
	defer chunks.Put(b)
	e.mu.Lock()
	defer e.mu.Unlock()
	n, err := unix.Read(fd, *b)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Read(fd, *b)
	}
	if n > 0 {
		e.ring.write((*b)[:n])
		e.tell()
	}
	return n, err
}

func (e *entry) closeOutput() {
	e.mu.Lock()
	out := e.out
	e.out = nil
	e.mu.Unlock()
	if out != nil {
		out.Close()
	}
}

// flush carries over what is in the pipe now, and no more: others may still
// write.
func (e *entry) flush() {
	e.mu.Lock()
	out := e.out
	e.mu.Unlock()
	if out == nil {
		return
	}
	raw, err := out.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // fails once it is closed: then all is carried over
		left, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		for n := 0; err == nil && left > 0; left -= n {
			if n, err = e.take(int(fd)); n <= 0 {
				return
			}
		}
	})
}

// end notes that the process has ended, or the job's last writer has closed.
func (e *entry) end(code *int, unknown bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running.Store(false)
	e.code, e.unknown, e.ended = code, unknown, time.Now()
	e.cancelled = e.cancelled && (unknown || code != nil && *code == wire.ExitKilled)
	e.tell()
	close(e.done)
}

// close lets go of all that the entry holds. Whoever still writes gets EPIPE.
func (e *entry) close() {
	e.closeInput()
	e.closeOutput()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ring.close()
	e.tell()
}
