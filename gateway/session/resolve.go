// Package session finds the pod of a session: from a store that a watch feeds,
// making the Sandbox when there is none, and waiting by watch until it serves.
//
// A session is a Sandbox and its ID is the Sandbox's name, so two gateways that
// make it at the same time make one.
package session

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/gateway/authn"
)

// Options of a Resolver.
type Options struct {
	// Create makes Sandboxes on demand.
	Create bool
	// Template is that of the Sandboxes made.
	Template string
	// StartDeadline is theirs: what nobody waits for any more doesn't pile up.
	StartDeadline time.Duration
	// ReadyTimeout is how long a call waits for a session to be ready.
	ReadyTimeout time.Duration
	// Observe is told how long each resolution took, by state (warm: the store had
	// the answer; cold: it was waited for) and result: ready, failed or cancelled.
	Observe func(state, result string, took time.Duration)
	Log     *slog.Logger
}

// Resolver finds and makes sessions.
type Resolver struct {
	client  client.Client
	store   *Store
	options Options
	creates flights
}

// NewResolver returns a resolver that reads store and writes through c.
func NewResolver(c client.Client, store *Store, options Options) *Resolver {
	return &Resolver{client: c, store: store, options: options, creates: newFlights()}
}

// Mode says what is done about a session that the watch hasn't told of.
type Mode int

// Modes of a Request.
const (
	// Find asks the API server for it: ErrNotFound if there is none.
	Find Mode = iota
	// FindOrCreate makes it if there is none.
	FindOrCreate
	// Known is ErrNotFound at once, and also for one that is being deleted: the API
	// server isn't asked.
	Known
)

// Request says which session is wanted, by whom.
type Request struct {
	Key    Key
	Caller *authn.Caller
	// Template is that of the session, if its caller cares; else one that has to be
	// made is made from the gateway's own.
	Template string
	// Mode says what is done about a session that isn't there.
	Mode Mode
	// NotPod is the UID of a pod that has said that it takes no more calls.
	NotPod string
}

// Resolve returns a session that is ready and the caller's. Its error is one of
// this package's, or the context's.
func (r *Resolver) Resolve(ctx context.Context, req Request) (rec *Record, err error) {
	state, start := "warm", time.Now()
	defer func() { r.options.Observe(state, resultOf(ctx, err), time.Since(start)) }()
	if rec, ok := r.store.Get(req.Key); ok && !rec.suspect && rec.routable() && rec.PodUID != req.NotPod {
		if err := req.admit(rec); err != nil {
			return nil, err
		}
		return rec, nil
	}
	state = "cold"
	return r.wait(ctx, req)
}

func resultOf(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return "ready"
	case ctx.Err() != nil:
		return "cancelled"
	default:
		return "failed"
	}
}

// wait makes the session if need be and follows its changes until it is decided.
func (r *Resolver) wait(ctx context.Context, req Request) (*Record, error) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, r.options.ReadyTimeout)
	defer cancel()
	changed := make(chan struct{}, 1)
	defer r.store.Watch(req.Key, wake(changed))()

	w := waiting{resolver: r, request: req}
	for {
		rec, err := w.step(ctx)
		if rec != nil || err != nil {
			return rec, contextCause(ctx, req.Key, w.last, start, err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, contextCause(ctx, req.Key, w.last, start, ctx.Err())
		}
	}
}

// contextCause turns the end of the wait into what the session lacked. A caller
// that has gone gets its own error: nobody reads it.
func contextCause(ctx context.Context, key Key, last *Record, start time.Time, err error) error {
	if err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return notReady(key, last, time.Since(start))
}
