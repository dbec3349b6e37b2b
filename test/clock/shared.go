package clock

import (
	"sync"
	"time"
)

// Shared is a Clock for several goroutines.
type Shared struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*timer]bool
}

// NewShared returns a clock that shows some time.
func NewShared() *Shared {
	return &Shared{now: time.Unix(1_800_000_000, 0), timers: map[*timer]bool{}}
}

// Now returns the time.
func (c *Shared) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc lets Advance call f once d is over, unless it was stopped.
func (c *Shared) AfterFunc(d time.Duration, f func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{c.now.Add(d), f}
	c.timers[t] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.timers, t)
	}
}

// Advance moves the time and fires what is due. What it fires may use the clock.
func (c *Shared) Advance(d time.Duration) {
	for _, f := range c.advance(d) {
		f()
	}
}

func (c *Shared) advance(d time.Duration) (due []func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for t := range c.timers {
		if !t.at.After(c.now) {
			due = append(due, t.f)
			delete(c.timers, t)
		}
	}
	return due
}
