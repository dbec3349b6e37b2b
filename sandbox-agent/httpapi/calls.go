package httpapi

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// errCancelled is the cause of the end of a request whose call was cancelled.
var errCancelled = errors.New("the call was cancelled")

// maxPast is how many calls that have ended are remembered, and ends of calls that
// have not begun. What is forgotten early is taken for one that has not begun.
const maxPast = 4096

// calls knows the requests under way by the call that they are part of. A replica
// of the gateway that is told to end a call of another one does it by the call's
// key: the agent is where all replicas meet.
type calls struct {
	now func() time.Time

	mu   sync.Mutex
	live map[string]map[string]*liveCall // by key and id
	past map[string]pastCall             // by key
	// order holds the keys of past in the order that they came in, as a ring.
	order []string
	next  int
}

type liveCall struct {
	// requests are under way; each is ended by what it points to.
	requests  map[*context.CancelCauseFunc]struct{}
	cancelled bool
}

func (c *liveCall) cancel() {
	c.cancelled = true
	for request := range c.requests {
		(*request)(errCancelled)
	}
}

type pastCall struct {
	was  was
	when time.Time
	slot int // in order
}

// was says what is remembered of a key.
type was int

const (
	wasEnded was = iota // a call has ended
	wasGone             // a call has ended with its connection
	wasEarly            // a call was ended that hasn't come yet
)

// lasts is how long that is remembered.
func (w was) lasts() time.Duration {
	switch w {
	case wasGone:
		return wire.CallGoneSeconds * time.Second
	case wasEarly:
		return wire.CallEarlySeconds * time.Second
	default:
		return wire.CallEndedSeconds * time.Second
	}
}

func newCalls(now func() time.Time) *calls {
	return &calls{now: now, live: map[string]map[string]*liveCall{}, past: map[string]pastCall{}}
}

// begin returns the context of a request that is part of a call, which ends with
// parent and with the call, and what to do at its end. ok is false if the call was
// ended before it came.
func (c *calls) begin(parent context.Context, key, id string) (ctx context.Context, end func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.recall(key, wasEarly) {
		c.remember(key, wasEnded)
		return nil, nil, false
	}
	call := c.live[key][id]
	if call == nil {
		call = &liveCall{requests: make(map[*context.CancelCauseFunc]struct{}, 1)}
		if c.live[key] == nil {
			c.live[key] = make(map[string]*liveCall, 1)
		}
		c.live[key][id] = call
	}
	ctx, cancel := context.WithCancelCause(parent)
	call.requests[&cancel] = struct{}{}
	if call.cancelled {
		cancel(errCancelled)
	}
	return ctx, func() {
		c.end(key, id, &cancel, parent.Err() != nil)
		cancel(nil)
	}, true
}

// end notes the end of a request, whose connection may be gone.
func (c *calls) end(key, id string, request *context.CancelCauseFunc, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.live[key][id]
	if delete(call.requests, request); len(call.requests) > 0 {
		return
	}
	if delete(c.live[key], id); len(c.live[key]) == 0 {
		delete(c.live, key)
	}
	// One that was cancelled by its key is none that a later word could mean.
	if gone && !call.cancelled {
		c.remember(key, wasGone)
	} else {
		c.remember(key, wasEnded)
	}
}

// cancel ends the call of that key if there is exactly one, and tells how many
// there are. Whoever's connection has just broken is the one that is meant: clients
// hang up and cancel. The end of a call that isn't known, and hasn't been lately,
// is kept for it: it may be faster than the call.
func (c *calls) cancel(key string) (matches int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.recall(key, wasGone) {
		c.remember(key, wasEnded)
		return 0
	}
	if len(c.live[key]) == 1 {
		for _, call := range c.live[key] {
			call.cancel()
		}
	}
	if len(c.live[key]) == 0 && !c.recall(key, wasEnded) {
		c.remember(key, wasEarly)
	}
	return len(c.live[key])
}

// ids are those of the calls of a key.
func (c *calls) ids(key string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Sorted(maps.Keys(c.live[key]))
	return all[:min(len(all), wire.MaxCalls)]
}

// recall tells whether that is what is remembered of key. The caller holds mu.
func (c *calls) recall(key string, w was) bool {
	p, ok := c.past[key]
	return ok && p.was == w && c.now().Sub(p.when) < w.lasts()
}

// remember makes it so. The caller holds mu.
func (c *calls) remember(key string, w was) {
	slot := c.next
	if len(c.order) < maxPast {
		c.order = append(c.order, key)
	} else {
		if oldest := c.order[slot]; c.past[oldest].slot == slot {
			delete(c.past, oldest)
		}
		c.order[slot] = key
	}
	c.next = (slot + 1) % maxPast
	c.past[key] = pastCall{was: w, when: c.now(), slot: slot}
}
