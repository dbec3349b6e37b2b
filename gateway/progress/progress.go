// Package progress tells a caller of a command's output while the command runs.
//
// Output comes as fast as the command writes it, and a caller may read slowly or
// not at all. So a Reporter takes output without ever waiting, keeps the
// beginning and the end of what it has not told yet, and tells it from a
// goroutine of its own: at once when there was silence, else in portions.
package progress

import (
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// MaxMessage bounds the text of one notification, in bytes, and so what is
	// held of output that has not been told.
	MaxMessage = 8 << 10
	// Interval is the least time from one notification to the next.
	Interval = 100 * time.Millisecond
)

// Streams of a command.
const (
	Stdout = iota
	Stderr
	streams
)

// Send tells a caller text, which is new, and how many bytes of output there
// have been so far: more each time. It may take as long as its caller does.
type Send func(seen int64, text string) error

// Reporter tells one command's output.
type Reporter struct {
	send Send
	wake chan struct{} // holds a value when there is something to tell
	stop chan struct{}
	done chan struct{}

	mu      sync.Mutex
	seen    int64
	pending pending
	// cut is the beginning of a character that has not come whole, by stream.
	cut  [streams][]byte
	mute bool // nothing is told any more
}

// Start returns a reporter that tells by send. The caller stops it.
func Start(send Send) *Reporter {
	r := &Reporter{send: send, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go r.run()
	return r
}

// Write takes output of one stream. It keeps nothing of data, and never waits.
func (r *Reporter) Write(stream int, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen += int64(len(data))
	if r.mute {
		return
	}
	// Streams are mixed as they come, but not within a character.
	before := r.cut[stream]
	if len(data) < utf8.UTFMax { // perhaps too little to complete it
		data, before = append(before, data...), nil
	}
	whole := len(data) - unfinished(data)
	r.cut[stream] = append([]byte(nil), data[whole:]...)
	r.pending.add(before)
	r.pending.add(data[:whole])
	if r.pending.total == 0 {
		return
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Stop ends the reporter: what has not been told is not told any more. It
// returns when the last notification has been sent.
func (r *Reporter) Stop() {
	r.silence()
	close(r.stop)
	<-r.done
}

func (r *Reporter) silence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mute, r.pending, r.cut = true, pending{}, [streams][]byte{}
}

func (r *Reporter) run() {
	defer close(r.done)
	for {
		select {
		case <-r.wake:
		case <-r.stop:
			return
		}
		next := time.After(Interval)
		if seen, text := r.next(); text != "" && r.send(seen, text) != nil {
			r.silence() // the caller has gone, which its context tells
			return
		}
		select {
		case <-next:
		case <-r.stop:
			return
		}
	}
}

// next returns what there is to tell.
func (r *Reporter) next() (seen int64, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.wake: // for output that is in this text
	default:
	}
	text = r.pending.text()
	r.pending = pending{head: r.pending.head[:0], tail: r.pending.tail[:0]}
	return r.seen, text
}
