// Package session finds the pod of a session: from a store that a watch feeds,
// making the Sandbox when there is none, and waiting by watch until it serves.
//
// A session is a Sandbox and its ID is the Sandbox's name, so two gateways that
// make it at the same time make one.
package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
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
	// Observe is told how long each resolution took that was not answered from
	// the store at once, by result: ready, failed or cancelled.
	Observe func(result string, took time.Duration)
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

// Request says which session is wanted, by whom.
type Request struct {
	Key    Key
	Caller *authn.Caller
	// MayCreate lets a missing one be made.
	MayCreate bool
	// NotPod is the UID of a pod that has said that it takes no more calls.
	NotPod string
}

// Resolve returns a session that is ready and the caller's. Its error is one of
// this package's, or the context's.
func (r *Resolver) Resolve(ctx context.Context, req Request) (*Record, error) {
	if rec, ok := r.store.Get(req.Key); ok && !rec.suspect && rec.routable() && rec.PodUID != req.NotPod {
		if !req.Caller.Owns(rec.Owner) {
			return nil, ErrNotAvailable
		}
		return rec, nil
	}
	start := time.Now()
	rec, err := r.wait(ctx, req)
	result := "ready"
	switch {
	case err == nil:
	case ctx.Err() != nil:
		result = "cancelled"
	default:
		result = "failed"
	}
	r.options.Observe(result, time.Since(start))
	return rec, err
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

// waiting is one caller's view of a session that is not ready yet.
type waiting struct {
	resolver *Resolver
	request  Request
	// last is what was known last, for the error.
	last *Record
	// awaited is the UID of a Sandbox that the API server has, and that the watch
	// may not have told of yet; seen is true once it has.
	awaited types.UID
	seen    bool
	// read is true once the API server was asked about a session that the store
	// doesn't have.
	read bool
}

// step looks once. It returns neither record nor error while there is reason to
// wait for the next change.
func (w *waiting) step(ctx context.Context) (*Record, error) {
	r := w.resolver
	rec, ok := r.store.Get(w.request.Key)
	if !ok {
		return w.missing(ctx)
	}
	if rec.UID == w.awaited {
		w.seen = true
	}
	if !w.request.Caller.Owns(rec.Owner) {
		return nil, ErrNotAvailable
	}
	if rec.suspect {
		fresh, err := r.read(ctx, w.request.Key)
		if err != nil || fresh == nil || fresh.UID != rec.UID {
			return nil, err // the watch will tell of its end
		}
		r.store.trust(fresh)
		rec = fresh
	}
	w.last = rec
	if rec.Deleting {
		if !rec.CreatedByGateway {
			return nil, notReady(w.request.Key, rec, 0)
		}
		return nil, nil // made anew once the old one is gone
	}
	switch readiness(rec) {
	case stateReady:
		if rec.PodUID == w.request.NotPod {
			return nil, nil
		}
		return rec, nil
	case stateFailed:
		return nil, notReady(w.request.Key, rec, 0)
	default:
		return nil, nil
	}
}

// missing handles a session that the store does not have.
func (w *waiting) missing(ctx context.Context) (*Record, error) {
	r := w.resolver
	if w.awaited != "" && !w.seen {
		// Something about it changed and it isn't there: it came and went.
		found, err := r.read(ctx, w.request.Key)
		if err != nil {
			return nil, err
		}
		if found != nil {
			return nil, w.await(found)
		}
	}
	if w.last != nil && !w.last.CreatedByGateway {
		return nil, ErrNotFound // deleted while it was waited for: only its maker makes it again
	}
	if w.request.MayCreate && r.options.Create {
		made, err := r.create(ctx, w.request)
		if err != nil {
			return nil, err
		}
		return nil, w.await(made)
	}
	if w.read {
		return nil, ErrNotFound
	}
	w.read = true
	found, err := r.read(ctx, w.request.Key)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, ErrNotFound
	}
	return nil, w.await(found)
}

// await notes a Sandbox that the API server has and the store not yet.
func (w *waiting) await(rec *Record) error {
	if !w.request.Caller.Owns(rec.Owner) {
		return ErrNotAvailable
	}
	w.awaited, w.seen, w.last = rec.UID, false, rec
	if now, ok := w.resolver.store.Get(rec.Key); ok && now.UID == rec.UID {
		w.seen = true
	}
	return nil
}

// read asks the API server itself; nil is none.
func (r *Resolver) read(ctx context.Context, key Key) (*Record, error) {
	var sandbox berthv1alpha1.Sandbox
	err := r.client.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, &sandbox)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		r.options.Log.WarnContext(ctx, "Sandbox could not be read", "namespace", key.Namespace, "session", key.Name, "error", err)
		return nil, &apiError{fmt.Sprintf("session %q could not be looked up: try again", key.Name), err}
	}
	return NewRecord(&sandbox), nil
}
