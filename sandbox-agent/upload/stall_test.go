package upload

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeClock has one timer at a time, which a test lets run out.
type fakeClock struct {
	mu    sync.Mutex
	left  time.Duration
	fire  func()
	armed chan struct{}
}

func (c *fakeClock) AfterFunc(d time.Duration, f func()) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.fire = d, f
	c.armed <- struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fire = nil
	}
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	fire := c.fire
	c.left -= d
	due := c.left <= 0
	c.mu.Unlock()
	if fire != nil && due {
		fire()
	}
}

type read struct {
	data string
	err  error
}

// slow is a body in pieces, read in a goroutine of its own.
func slow(t *testing.T) (clock *fakeClock, sender *io.PipeWriter, reads <-chan read) {
	body, sender := io.Pipe()
	clock = &fakeClock{armed: make(chan struct{})}
	p := NewPatient(body, clock, func() { body.CloseWithError(os.ErrDeadlineExceeded) })
	c := make(chan read)
	go func() {
		for {
			b := make([]byte, 10)
			n, err := p.Read(b)
			c <- read{string(b[:n]), err}
			if err != nil {
				return
			}
		}
	}()
	return clock, sender, c
}

func TestSlowBodyIsRead(t *testing.T) {
	t.Parallel()
	clock, sender, reads := slow(t)
	for range 3 { // 57 s in all
		<-clock.armed
		clock.advance(StallTime - time.Second)
		if _, err := sender.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if got := <-reads; got != (read{"x", nil}) {
			t.Fatalf("read %+v", got)
		}
		clock.advance(time.Hour) // the disk's time
	}
	<-clock.armed
	sender.Close()
	if got := <-reads; !errors.Is(got.err, io.EOF) {
		t.Errorf("the end is %v", got.err)
	}
}

func TestStalledBodyFails(t *testing.T) {
	t.Parallel()
	clock, sender, reads := slow(t)
	<-clock.armed
	if _, err := sender.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	<-reads
	<-clock.armed
	clock.advance(StallTime)
	if got := <-reads; !errors.Is(got.err, ErrStalled) {
		t.Errorf("got %+v, want ErrStalled", got)
	}
}

func TestOtherEndsAreTheBodys(t *testing.T) {
	t.Parallel()
	clock, sender, reads := slow(t)
	<-clock.armed
	broken := errors.New("reset")
	sender.CloseWithError(broken)
	if got := <-reads; !errors.Is(got.err, broken) {
		t.Errorf("got %v", got.err)
	}
	s, err := io.ReadAll(NewPatient(strings.NewReader("all"), &fakeClock{armed: make(chan struct{}, 10)}, func() {}))
	if err != nil || string(s) != "all" {
		t.Errorf("read %q, %v", s, err)
	}
}
