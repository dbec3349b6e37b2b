package shell

import (
	"context"
	"slices"
	"sync"
)

// queue lets one caller at a time in, in the order of arrival.
type queue struct {
	mu      sync.Mutex
	busy    bool
	waiting []chan struct{}
	limit   int
}

// enter waits for the caller's turn. It returns ErrQueueFull at once when
// limit callers wait, or ctx's error when that ends first: then the caller
// was never in.
func (q *queue) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	q.mu.Lock()
	if !q.busy {
		q.busy = true
		q.mu.Unlock()
		return nil
	}
	if len(q.waiting) >= q.limit {
		q.mu.Unlock()
		return ErrQueueFull
	}
	turn := make(chan struct{})
	q.waiting = append(q.waiting, turn)
	q.mu.Unlock()

	select {
	case <-turn:
		if ctx.Err() != nil { // both at once: the command must not run
			q.leave()
			return ctx.Err()
		}
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	i := slices.Index(q.waiting, turn)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	q.mu.Unlock()
	if i < 0 { // the turn came meanwhile
		q.leave()
	}
	return ctx.Err()
}

// leave passes the turn on.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.busy = false
		return
	}
	close(q.waiting[0])
	q.waiting = slices.Delete(q.waiting, 0, 1)
}
