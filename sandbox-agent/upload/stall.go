package upload

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// StallTime is how long a body may say nothing.
const StallTime = 20 * time.Second

// ErrStalled is matched by the error of a body that said nothing for too long.
var ErrStalled = fmt.Errorf("nothing came for %v", StallTime)

// Clock is what a stall is measured by.
type Clock interface {
	// AfterFunc calls f in its own goroutine after d, unless it was stopped.
	AfterFunc(d time.Duration, f func()) (stop func())
}

// Patient reads a body that may be slow, but not stall: each piece has StallTime
// to come. The time that a piece takes to be written doesn't count.
type Patient struct {
	body      io.Reader
	clock     Clock
	interrupt func() // makes a Read under way return

	mu      sync.Mutex
	stalled bool
}

// NewPatient returns a reader of body. interrupt is called once a Read of it has
// taken too long, and must make that Read return.
func NewPatient(body io.Reader, clock Clock, interrupt func()) *Patient {
	return &Patient{body: body, clock: clock, interrupt: interrupt}
}

// Read implements io.Reader.
func (p *Patient) Read(b []byte) (int, error) {
	stop := p.clock.AfterFunc(StallTime, p.stall)
	n, err := p.body.Read(b)
	stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled && !errors.Is(err, io.EOF) {
		return n, ErrStalled
	}
	return n, err
}

func (p *Patient) stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = true
	p.interrupt()
}
