// Package cancellation ends calls whose callers no longer want them.
//
// The MCP SDK runs a handler detached from its HTTP request, and a stateless
// server sees a client's notifications/cancelled on another connection than the
// call that it means. So each HTTP request gets a context of its own that a
// disconnect or such a notification ends, and handlers follow it.
package cancellation

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
)

// ErrNotified is the cause of a call that a notification cancelled.
var ErrNotified = errors.New("cancelled by its client")

// Call names a call as a client does. Two clients of one caller may use the same
// id in the same session at the same time.
type Call struct {
	Caller  [sha256.Size]byte
	Session string
	// ID is the JSON-RPC id as it was sent.
	ID string
}

// Registry knows the calls under way in this process.
type Registry struct {
	mu    sync.Mutex
	calls map[Call]map[*entry]struct{}
}

type entry struct{ cancel context.CancelCauseFunc }

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{calls: make(map[Call]map[*entry]struct{})} }

// Begin notes a call that cancel ends, until the function that it returns is
// called.
func (r *Registry) Begin(call Call, cancel context.CancelCauseFunc) (end func()) {
	e := &entry{cancel}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls[call] == nil {
		r.calls[call] = make(map[*entry]struct{}, 1)
	}
	r.calls[call][e] = struct{}{}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.calls[call], e)
		if len(r.calls[call]) == 0 {
			delete(r.calls, call)
		}
	}
}

// Cancel ends the call if exactly one is under way by that name: of two it can't
// be told which one is meant.
func (r *Registry) Cancel(call Call) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.calls[call]) != 1 {
		return false
	}
	for e := range r.calls[call] {
		e.cancel(ErrNotified)
	}
	return true
}

type contextKey struct{}

// WithScope returns ctx with a scope that Follow follows.
func WithScope(ctx, scope context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, scope)
}

// Follow returns a context that ends when ctx does or the scope that WithScope
// stored in it. The caller calls stop when done.
func Follow(ctx context.Context) (_ context.Context, stop func()) {
	scope, ok := ctx.Value(contextKey{}).(context.Context)
	if !ok {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	detach := context.AfterFunc(scope, func() { cancel(context.Cause(scope)) })
	return ctx, func() {
		detach()
		cancel(nil)
	}
}
