package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// ValidCallKey tells whether key has the form of a call's key.
func ValidCallKey(key string) bool { return wire.ValidCallKey(key) }

type callKey struct{}

// NewCallID gives the id of a new call.
func NewCallID() string {
	id := make([]byte, 32)
	rand.Read(id) // never fails (crypto/rand)
	return hex.EncodeToString(id)
}

// WithCall makes the requests of ctx part of a call that CancelCall ends by key, 64
// lower-case hexadecimal digits, which should say nothing to the agent. id is the
// call's own, by NewCallID. A key or id of another form is left out.
func WithCall(ctx context.Context, key, id string) context.Context {
	if !wire.ValidCallKey(key) || !wire.ValidCallKey(id) {
		return ctx
	}
	return context.WithValue(ctx, callKey{}, key+"."+id)
}

// withoutCall is for requests about calls: none may be part of what it cancels.
func withoutCall(ctx context.Context) context.Context { return context.WithValue(ctx, callKey{}, nil) }

// setCall names ctx's call in a request's header.
func setCall(ctx context.Context, header http.Header) {
	if call, ok := ctx.Value(callKey{}).(string); ok {
		header.Set(wire.CallHeader, call)
	}
}

// CancelCall ends the call of that key, of this or another client: its requests
// that are under way are as if their caller had gone. It returns ErrNotFound when
// there is none, and ErrManyCalls when there are several: then it ends none. The
// end of a call that the agent hasn't seen within a minute is kept for 10 s for it,
// and then is the call's before it begins.
func (c *Client) CancelCall(ctx context.Context, pod Pod, key string) error {
	if !wire.ValidCallKey(key) {
		return notSent{errors.New("not a call's key")}
	}
	return c.small(withoutCall(ctx), pod, http.MethodDelete, wire.CallsPath+"/"+key, nil, nil)
}

// Calls gives the ids of the calls of that key that are under way, of this and other
// clients, wire.MaxCalls at most.
func (c *Client) Calls(ctx context.Context, pod Pod, key string) ([]string, error) {
	if !wire.ValidCallKey(key) {
		return nil, notSent{errors.New("not a call's key")}
	}
	var calls wire.Calls
	if err := c.small(withoutCall(ctx), pod, http.MethodGet, wire.CallsPath+"/"+key, nil, &calls); err != nil {
		return nil, err
	}
	if len(calls.IDs) > wire.MaxCalls || slices.ContainsFunc(calls.IDs, func(id string) bool { return !wire.ValidCallKey(id) }) {
		return nil, badAnswer("%d calls", len(calls.IDs))
	}
	return calls.IDs, nil
}
