// Package room shares out memory among calls, so that many large ones wait for
// each other instead of ending the gateway, and each caller for its own, so that
// others find some.
package room

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/cancellation"
)

// Room is memory that many share, in bytes. Who finds none waits, in the order of
// arrival.
type Room struct {
	each int64
	left *semaphore.Weighted

	mu      sync.Mutex
	callers map[string]*portion // by name: a caller has as many tokens as it likes
}

// portion is what one caller may have of a room.
type portion struct {
	left  *semaphore.Weighted
	users int // who hold some of it, or wait for it
}

// New returns a room of so many bytes, of which one caller may have each at a time.
func New(size, each int64) *Room {
	return &Room{each: each, left: semaphore.NewWeighted(size), callers: make(map[string]*portion)}
}

// wait bounds the wait.
const wait = time.Minute

// ErrFull is an answer that found no room in time.
var ErrFull = errors.New("too many large answers are being sent at a time; what was asked may have run")

// Share is what one has of a room. Nil is a share of nothing.
type Share struct {
	room   *Room
	caller string
	own    *portion
	held   int64
}

// Take waits until there is room for so many bytes, or for all that a caller may
// have. It returns ErrFull, or the context's error.
func (r *Room) Take(ctx context.Context, bytes int64) (*Share, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, wait, ErrFull)
	defer cancel()
	s := r.enter(ctx, bytes)
	// First its own: who has enough isn't in the way of others.
	if s.own.left.Acquire(ctx, s.held) != nil {
		s.leave()
		return nil, context.Cause(ctx)
	}
	if r.left.Acquire(ctx, s.held) != nil {
		s.own.left.Release(s.held)
		s.leave()
		return nil, context.Cause(ctx)
	}
	return s, nil
}

// try is Take without waiting: ok is false if there is no room.
func (r *Room) try(ctx context.Context, bytes int64) (s *Share, ok bool) {
	s = r.enter(ctx, bytes)
	if !s.own.left.TryAcquire(s.held) {
		s.leave()
		return nil, false
	}
	if !r.left.TryAcquire(s.held) {
		s.own.left.Release(s.held)
		s.leave()
		return nil, false
	}
	return s, true
}

// enter finds the portion of the caller of ctx.
func (r *Room) enter(ctx context.Context, bytes int64) *Share {
	name := ""
	if caller, ok := authn.FromContext(ctx); ok {
		name = caller.Owner()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.callers[name]
	if own == nil {
		own = &portion{left: semaphore.NewWeighted(r.each)}
		r.callers[name] = own
	}
	own.users++
	return &Share{r, name, own, min(bytes, r.each)}
}

// leave forgets a portion that nobody uses.
func (s *Share) leave() {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	if s.own.users--; s.own.users == 0 {
		delete(s.room.callers, s.caller)
	}
}

// Keep gives back what is more than so many bytes.
func (s *Share) Keep(bytes int64) {
	if s != nil && bytes < s.held {
		s.room.left.Release(s.held - bytes)
		s.own.left.Release(s.held - bytes)
		s.held = bytes
	}
}

// Release gives all of it back. It is called once.
func (s *Share) Release() {
	if s != nil {
		s.Keep(0)
		s.leave()
	}
}

// Admit is Take for an answer, which has the room until the call's HTTP request
// has been answered. A call of a batch doesn't wait: what is held may be its own
// request's.
func (r *Room) Admit(ctx context.Context, bytes int64) error {
	if cancellation.InBatch(ctx) {
		share, ok := r.try(ctx, bytes)
		if !ok {
			return ErrFull
		}
		cancellation.AtEnd(ctx, share.Release)
		return nil
	}
	share, err := r.Take(ctx, bytes)
	if err != nil {
		return err
	}
	cancellation.AtEnd(ctx, share.Release)
	return nil
}
