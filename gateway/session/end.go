package session

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/gateway/authn"
)

// endWait is how long End waits for the watch to tell of a deletion, so that
// the other replicas, whose watches are as fast, know it too.
const endWait = 2 * time.Second

// endTries is how often End looks again when the session was made anew between
// its look and its deletion.
const endTries = 3

// End deletes a session that is the caller's. One that does not exist, and one
// that is another's, look the same: nothing happens and there is no error.
//
// It reads the API server, not the store: a session that another replica has
// just made must be found. It deletes by UID: what it looked at is what goes.
func (r *Resolver) End(ctx context.Context, key Key, caller *authn.Caller) error {
	for range endTries {
		rec, err := r.read(ctx, key)
		if err != nil {
			return err
		}
		if rec == nil || !caller.Owns(rec.Owner) {
			return nil
		}
		err = r.delete(ctx, rec)
		switch {
		case apierrors.IsConflict(err):
			continue
		case err != nil && !apierrors.IsNotFound(err):
			return fmt.Errorf("delete session %q: %w", key.Name, err)
		}
		r.store.end(ctx, key, rec.UID, endWait)
		return nil
	}
	return fmt.Errorf("delete session %q: it was made anew %d times meanwhile", key.Name, endTries)
}

func (r *Resolver) delete(ctx context.Context, rec *Record) error {
	sandbox := &berthv1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: rec.Namespace, Name: rec.Name}}
	return r.client.Delete(ctx, sandbox, client.Preconditions{UID: &rec.UID})
}
