// Package room shares out memory among calls, so that many large ones wait for
// each other instead of ending the gateway.
package room

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/berth-dev/berth/gateway/cancellation"
)

// Room is memory that many share, in bytes. Who finds none waits, in the order of
// arrival.
type Room struct {
	size int64
	left *semaphore.Weighted
}

// New returns a room of so many bytes.
func New(size int64) *Room { return &Room{size, semaphore.NewWeighted(size)} }

// wait bounds the wait.
const wait = time.Minute

// ErrFull is an answer that found no room in time.
var ErrFull = errors.New("too many large answers are being sent at a time; what was asked may have run")

// Share is what one has of a room. Nil is a share of nothing.
type Share struct {
	room *Room
	held int64
}

// Take waits until there is room for so many bytes, or for all there are. It
// returns ErrFull, or the context's error.
func (r *Room) Take(ctx context.Context, bytes int64) (*Share, error) {
	bytes = min(bytes, r.size)
	ctx, cancel := context.WithTimeoutCause(ctx, wait, ErrFull)
	defer cancel()
	if r.left.Acquire(ctx, bytes) != nil {
		return nil, context.Cause(ctx)
	}
	return &Share{r, bytes}, nil
}

// Keep gives back what is more than so many bytes.
func (s *Share) Keep(bytes int64) {
	if s != nil && bytes < s.held {
		s.room.left.Release(s.held - bytes)
		s.held = bytes
	}
}

// Release gives all of it back.
func (s *Share) Release() { s.Keep(0) }

// Admit is Take for an answer, which has the room until the call's HTTP request
// has been answered. A call of a batch doesn't wait: what is held may be its own
// request's.
func (r *Room) Admit(ctx context.Context, bytes int64) error {
	if cancellation.InBatch(ctx) {
		bytes = min(bytes, r.size)
		if !r.left.TryAcquire(bytes) {
			return ErrFull
		}
		cancellation.AtEnd(ctx, func() { r.left.Release(bytes) })
		return nil
	}
	share, err := r.Take(ctx, bytes)
	if err != nil {
		return err
	}
	cancellation.AtEnd(ctx, share.Release)
	return nil
}
