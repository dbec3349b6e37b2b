package supervise

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/process"
)

// ErrEnded is returned for a signal to a process that has ended.
var ErrEnded = errors.New("the process has ended")

// Process is one that a supervisor started. It leads a session and a process
// group of its own.
type Process struct {
	PID   int
	ended chan struct{}

	mu     sync.Mutex
	pin    process.Pin
	child  *process.Child // as the agent's own, should it fall to it
	orphan bool
	code   int
	known  bool
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// ExitCode is the process's status as a shell gives it, once it has ended; known
// is false when it was lost together with the supervisor.
func (p *Process) ExitCode() (code int, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.code, p.known
}

// Orphaned tells whether the process lost its supervisor.
func (p *Process) Orphaned() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.orphan
}

// SignalGroup sends sig to the group that the process leads. It returns
// ErrEnded once the process has ended.
func (p *Process) SignalGroup(sig unix.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.pin.SignalGroup(sig)
	if errors.Is(err, unix.ESRCH) {
		return ErrEnded
	}
	return err
}

func (p *Process) end(code int, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.code, p.known = code, known
	p.pin.Release()
	close(p.ended)
}

// inherit waits for a process whose supervisor is gone.
func (p *Process) inherit(r *process.Reaper) {
	p.mu.Lock()
	p.orphan = true
	early, pin := p.child, p.pin
	p.mu.Unlock()
	// Reaped meanwhile, or still there; else the supervisor had waited for it and
	// couldn't tell any more.
	child, ok := r.Adopt(pin)
	if !ok {
		child = early
	}
	if child != nil {
		select {
		case <-child.Exited():
			ok = true
		default:
		}
	}
	if !ok {
		p.end(0, false)
		return
	}
	<-child.Exited()
	p.end(child.ExitCode(), true)
}
