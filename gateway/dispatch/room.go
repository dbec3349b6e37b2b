package dispatch

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/berth-dev/berth/gateway/cancellation"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// Room is memory that the answers of all calls share, in bytes. Who finds none
// waits, in the order of arrival.
type Room struct {
	size int64
	left *semaphore.Weighted
}

// NewRoom returns a room of so many bytes.
func NewRoom(size int64) *Room { return &Room{size, semaphore.NewWeighted(size)} }

// roomWait bounds the wait.
const roomWait = time.Minute

// ErrNoRoom is an answer that found no room in time.
var ErrNoRoom = errors.New("too many large answers are being sent at a time; what was asked may have run")

// Admit waits until there is room for so many bytes, or for all there are, and
// holds them until the call's HTTP request has been answered. A call of a batch
// doesn't wait: what is held may be its own request's.
func (r *Room) Admit(ctx context.Context, bytes int64) error {
	bytes = min(bytes, r.size)
	ctx, cancel := context.WithTimeoutCause(ctx, roomWait, ErrNoRoom)
	defer cancel()
	if cancellation.InBatch(ctx) {
		if !r.left.TryAcquire(bytes) {
			return ErrNoRoom
		}
	} else if r.left.Acquire(ctx, bytes) != nil {
		return context.Cause(ctx)
	}
	cancellation.AtEnd(ctx, func() { r.left.Release(bytes) })
	return nil
}

// What a result costs. The MCP SDK encodes it three times over, it is in its
// answer twice, and < > & become six bytes each. But no more than MaxResult
// leaves the gateway.
const (
	costOfByte = 30
	mostCost   = 6 * client.MaxResult
	// resultRoom bounds what large results cost at a time.
	resultRoom = 4 * mostCost
)

// AdmitResults returns what client.Options.Admit is in a gateway.
func AdmitResults() Admit {
	room := NewRoom(resultRoom)
	return func(ctx context.Context, size int64) error { return room.Admit(ctx, min(size*costOfByte, mostCost)) }
}
