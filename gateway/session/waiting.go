package session

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
)

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
	// confirmed is true once the API server was asked whether a session is as
	// hopeless as the store has it: who has just mended it may be faster than the watch.
	confirmed bool
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
	if err := w.request.admit(rec); err != nil {
		return nil, err
	}
	if rec.Deleting && w.request.Mode == Known {
		return nil, ErrNotFound
	}
	if rec.suspect || (!w.confirmed && !rec.Deleting && readiness(rec) == stateFailed) {
		w.confirmed = true
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
	if w.request.Mode == Known {
		return nil, ErrNotFound
	}
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
	if w.request.Mode == FindOrCreate && r.options.Create {
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
	if err := w.request.admit(rec); err != nil {
		return err
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
