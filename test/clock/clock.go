// Package clock is a time that tests move by hand; sandbox-agent's artifact.Clock.
package clock

import "time"

// Clock stands still until it is moved. It is for one goroutine.
type Clock struct {
	Time   time.Time
	timers []*timer
}

type timer struct {
	at time.Time
	f  func()
}

// New returns a clock that shows some time.
func New() *Clock { return &Clock{Time: time.Unix(1_800_000_000, 0)} }

// Now returns Time.
func (c *Clock) Now() time.Time { return c.Time }

// AfterFunc lets Advance call f once d is over, unless it was stopped.
func (c *Clock) AfterFunc(d time.Duration, f func()) (stop func()) {
	t := &timer{c.Time.Add(d), f}
	c.timers = append(c.timers, t)
	return func() { t.f = nil }
}

// Advance moves the time and fires what is due.
func (c *Clock) Advance(d time.Duration) {
	c.Time = c.Time.Add(d)
	for _, t := range c.timers {
		if f := t.f; f != nil && !t.at.After(c.Time) {
			t.f = nil
			f()
		}
	}
}

// Waiting counts the timers that are set.
func (c *Clock) Waiting() (n int) {
	for _, t := range c.timers {
		if t.f != nil {
			n++
		}
	}
	return n
}
