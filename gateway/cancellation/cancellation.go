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
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Causes of a call's end.
var (
	// ErrNotified: a notification of its client cancelled it.
	ErrNotified = errors.New("cancelled by its client")
	// ErrShutdown: it outlasted the gateway.
	ErrShutdown = errors.New("the gateway shut down while the call ran: what it had begun was stopped")
)

// Call names a call as a client does. Two clients of one caller may use the same
// id in the same session at the same time.
type Call struct {
	// Caller is who calls, whichever token says so: a client renews its own.
	Caller string
	// Session is where it runs, and in which namespace.
	Session string
	// ID is the JSON-RPC id as it was sent.
	ID string
}

// Key names the call to the agent of its session, by which another replica ends it:
// 64 hexadecimal digits that tell the agent nothing.
func (c Call) Key() string {
	h := sha256.New()
	for _, part := range []string{"berth call", c.Caller, c.Session, c.ID} {
		fmt.Fprintf(h, "%d:%s", len(part), part) // so that no two lists of parts are one text
	}
	return hex.EncodeToString(h.Sum(nil))
}

// goneFor is how long after a disconnect a notification about the same call is
// still taken for that call's: clients send both.
const goneFor = 10 * time.Second

// maxGone bounds what is remembered of disconnects.
const maxGone = 4096

// Registry knows the calls under way in this process.
type Registry struct {
	now func() time.Time

	mu sync.Mutex
	// calls are by Key, and by an id of each call's own. A name itself may be as long
	// as a request's body, and would be held beyond it.
	calls map[string]map[string]context.CancelCauseFunc
	// gone are calls that ended with their connection, by Key, and when.
	gone map[string]time.Time
}

// NewRegistry returns an empty registry that tells the time by now.
func NewRegistry(now func() time.Time) *Registry {
	return &Registry{now: now, calls: make(map[string]map[string]context.CancelCauseFunc), gone: make(map[string]time.Time)}
}

// Begin notes a call, with an id that no other has, that cancel ends, until the
// function that it returns is called, which is told whether the call's connection is
// gone.
func (r *Registry) Begin(call Call, id string, cancel context.CancelCauseFunc) (end func(disconnected bool)) {
	key := call.Key()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls[key] == nil {
		r.calls[key] = make(map[string]context.CancelCauseFunc, 1)
	}
	r.calls[key][id] = cancel
	return func(disconnected bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.calls[key], id)
		if len(r.calls[key]) == 0 {
			delete(r.calls, key)
		}
		if disconnected {
			r.forget()
			r.gone[key] = r.now()
		}
	}
}

// forget makes room for another disconnect.
func (r *Registry) forget() {
	if len(r.gone) < maxGone {
		return
	}
	for key, since := range r.gone {
		if r.now().Sub(since) > goneFor {
			delete(r.gone, key)
		}
	}
	if len(r.gone) >= maxGone {
		clear(r.gone)
	}
}

// Found says which calls a notification finds here.
type Found int

// What a notification finds.
const (
	// Unknown: no such call. Another replica may have it.
	Unknown Found = iota
	// One: exactly one. Another replica may have another one.
	One
	// Gone: one that had just ended with its connection: it was meant.
	Gone
	// Several: it can't be told which one is meant.
	Several
)

// Find looks for the calls that a notification may mean. id is that of the one, if
// there is one. What was Gone is so once: the next notification means another call.
func (r *Registry) Find(call Call) (id string, found Found) {
	key := call.Key()
	r.mu.Lock()
	defer r.mu.Unlock()
	if since, ok := r.gone[key]; ok {
		delete(r.gone, key)
		if r.now().Sub(since) <= goneFor {
			return "", Gone
		}
	}
	switch len(r.calls[key]) {
	case 0:
		return "", Unknown
	case 1:
		for id = range r.calls[key] {
		}
		return id, One
	default:
		return "", Several
	}
}

// Cancel ends the call of that id, if it is still under way.
func (r *Registry) Cancel(call Call, id string) {
	key := call.Key()
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel, ok := r.calls[key][id]; ok {
		cancel(ErrNotified)
	}
}

type contextKey struct{}

// WithScope returns ctx with a scope that Follow follows.
func WithScope(ctx, scope context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, scope)
}

type batchKey struct{}

// WithBatch marks a call as one of several that share an HTTP request, and so
// its end.
func WithBatch(ctx context.Context) context.Context {
	return context.WithValue(ctx, batchKey{}, true)
}

// InBatch tells whether WithBatch marked ctx. Such a call must not wait for what
// another holds until its end (see AtEnd): the other may be of the same request.
func InBatch(ctx context.Context) bool { return ctx.Value(batchKey{}) != nil }

// AtEnd runs f once the call's HTTP request has been answered, or at once outside
// of one.
func AtEnd(ctx context.Context, f func()) {
	if scope, ok := ctx.Value(contextKey{}).(context.Context); ok {
		context.AfterFunc(scope, f)
		return
	}
	f()
}

// Attempt returns ctx with an end of its own for what AtEnd is to do: drop, or the
// end of the call's request if that comes first. It is for what a call gives up, to
// do it anew.
func Attempt(ctx context.Context) (attempt context.Context, drop func()) {
	scope, cancel := context.WithCancel(context.WithoutCancel(ctx))
	AtEnd(ctx, cancel)
	return WithScope(ctx, scope), cancel
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
