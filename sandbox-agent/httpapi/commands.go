package httpapi

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// commands knows what is queued or running.
type commands struct {
	mu     sync.Mutex
	all    map[*context.CancelCauseFunc]struct{}
	byID   map[string]context.CancelCauseFunc
	closed bool
	active sync.WaitGroup
}

// errEnding is the cause of a command's end when the agent's own is near.
var errEnding = errors.New("the agent is shutting down")

// begin returns the context of a command and what to call at its end. It
// refuses an id that is taken (the empty one never is), and everything once
// close was called.
func (c *commands) begin(parent context.Context, id string) (ctx context.Context, done func(), refusal *Refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, draining()
	}
	if _, taken := c.byID[id]; taken {
		return nil, nil, refuse(http.StatusBadRequest, wire.CodeIDInUse, "a command with this id is queued or running")
	}
	c.active.Add(1)
	if c.all == nil {
		c.all, c.byID = map[*context.CancelCauseFunc]struct{}{}, map[string]context.CancelCauseFunc{}
	}
	ctx, cancel := context.WithCancelCause(parent)
	c.all[&cancel] = struct{}{}
	if id != "" {
		c.byID[id] = cancel
	}
	return ctx, func() {
		defer c.active.Done()
		cancel(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.all, &cancel)
		delete(c.byID, id)
	}, nil
}

func (c *commands) cancel(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	cancel, ok := c.byID[id]
	if ok {
		cancel(nil)
	}
	return ok
}

// close refuses commands from now on.
func (c *commands) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// count is how many are queued or running.
func (c *commands) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

func (c *commands) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// endAll ends what is left when the agent can't wait any longer.
func (c *commands) endAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for cancel := range c.all {
		(*cancel)(errEnding)
	}
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request, id string) *Refusal {
	if refusal := noBody(r); refusal != nil {
		return refusal
	}
	if r.URL.RawQuery != "" {
		return badRequest("this request takes no query")
	}
	kept := s.cancelDetached(id)
	if !wire.ValidExecID(id) || !s.commands.cancel(id) && !kept {
		return refuse(http.StatusNotFound, wire.CodeNotFound, "no command with this id is queued or running")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
