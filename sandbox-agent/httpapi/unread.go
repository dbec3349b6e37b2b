package httpapi

import (
	"context"
	"sync"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// maxUnread is how many bytes answers may hold together while they are made and
// read. A caller may take its time, and the next command doesn't wait for that:
// without a bound, a queue of commands with large results would fill the pod.
const maxUnread = 32 << 20

// costOf is what an answer with so many bytes of output takes: those, and their
// JSON, in which a control character takes six.
func costOf(output int64) int64 { return output + min(6*output, wire.MaxResult) }

// unread knows what answers hold that are made or read just now.
type unread struct {
	most int64
	turn chan struct{} // holds one: whoever took it is served next

	mu    sync.Mutex
	held  int64
	freed chan struct{} // closed when held becomes less
}

func newUnread() *unread { return newRoom(maxUnread) }

func newRoom(most int64) *unread {
	return &unread{most: most, turn: make(chan struct{}, 1), freed: make(chan struct{})}
}

// share is what one answer holds. A nil share holds nothing.
type share struct {
	of   *unread
	size int64
}

// take waits until there is room for size bytes, or for more than fit if nobody
// holds any. Its error is ctx's.
func (u *unread) take(ctx context.Context, size int64) (*share, error) {
	select {
	case u.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-u.turn }()
	for {
		u.mu.Lock()
		if u.held == 0 || u.held+size <= u.most {
			u.held += size
			u.mu.Unlock()
			return &share{u, size}, nil
		}
		freed := u.freed
		u.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// keep gives back all but size bytes.
func (s *share) keep(size int64) {
	if s == nil || size >= s.size {
		return
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.held -= s.size - size
	s.size = size
	close(s.of.freed)
	s.of.freed = make(chan struct{})
}

func (s *share) release() { s.keep(0) }
