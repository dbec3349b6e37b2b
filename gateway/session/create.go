package session

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
)

// +kubebuilder:rbac:groups=berth.dev,resources=sandboxes,verbs=create;delete
// +kubebuilder:rbac:groups=berth.dev,resources=sandboxes/owner,verbs=assign

// writeTimeout bounds one write to the API server.
const writeTimeout = 15 * time.Second

// create makes the session's Sandbox, or returns the one that somebody else
// made first. Callers that ask at the same time share one request, which
// outlives each of them: a caller that gives up doesn't take from the others.
// Only callers of the same owner share, so nobody gets another's Sandbox by it.
// A request's Template is one that its caller may use.
func (r *Resolver) create(ctx context.Context, req Request) (*Record, error) {
	owner, template := req.Caller.Owner(), cmp.Or(req.Template, r.options.Template)
	return r.creates.do(ctx, flightKey{req.Key, owner, template}, r.store, func(ctx context.Context) (*Record, error) {
		sandbox := r.newSandbox(req.Key, owner, template)
		err := r.client.Create(ctx, sandbox)
		switch {
		case err == nil:
			return NewRecord(sandbox), nil
		case apierrors.IsAlreadyExists(err):
			found, err := r.read(ctx, req.Key)
			if err == nil && found == nil {
				err = fmt.Errorf("session %q was deleted while it was being made: try again", req.Key.Name)
			}
			return found, err
		default:
			r.options.Log.WarnContext(ctx, "Sandbox could not be made", "namespace", req.Key.Namespace, "session", req.Key.Name, "error", err)
			return nil, createError(req.Key, err)
		}
	})
}

func (r *Resolver) newSandbox(key Key, owner, template string) *berthv1alpha1.Sandbox {
	deadline := berthv1alpha1.Duration(r.options.StartDeadline.String())
	return &berthv1alpha1.Sandbox{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace,
			Name:      key.Name,
			Labels:    map[string]string{berthv1alpha1.LabelCreatedBy: berthv1alpha1.CreatedByGateway},
		},
		Spec: berthv1alpha1.SandboxSpec{
			TemplateRef:   berthv1alpha1.TemplateReference{Name: template},
			StartDeadline: &deadline,
			Owner:         owner,
		},
	}
}

// createError says what a caller can do about a refusal, and nothing of the
// gateway's own identity.
func createError(key Key, err error) error {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("namespace %q is being deleted", key.Namespace)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("namespace %q does not exist", key.Namespace)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the cluster refused a sandbox in namespace %q: a cluster administrator finds the cause in the gateway's log", key.Namespace)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return fmt.Errorf("the cluster refused the sandbox: %w", err)
	default:
		return fmt.Errorf("session %q could not be made (%s): try again", key.Name, apierrors.ReasonForError(err))
	}
}

// flights are the creates under way, one for each key. A create lands when the
// watch tells of it: who asks in between, and whose store doesn't have it yet,
// shares its answer instead of asking again.
type flights struct {
	mu *sync.Mutex
	m  map[flightKey]*flight
}

type flightKey struct {
	Key
	owner, template string
}

type flight struct {
	done chan struct{}
	rec  *Record
	err  error
}

func newFlights() flights { return flights{mu: new(sync.Mutex), m: make(map[flightKey]*flight)} }

// landWait is how long a create waits for the watch.
const landWait = 2 * time.Second

// do runs fn once for all who ask until its Sandbox is in store.
func (f flights) do(ctx context.Context, key flightKey, store *Store, fn func(context.Context) (*Record, error)) (*Record, error) {
	f.mu.Lock()
	running, ok := f.m[key]
	if !ok {
		running = &flight{done: make(chan struct{})}
		f.m[key] = running
		go f.fly(context.WithoutCancel(ctx), key, running, store, fn)
	}
	f.mu.Unlock()
	select {
	case <-running.done:
		return running.rec, running.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f flights) fly(ctx context.Context, key flightKey, running *flight, store *Store, fn func(context.Context) (*Record, error)) {
	changed := make(chan struct{}, 1)
	defer store.Watch(key.Key, wake(changed))()
	running.run(ctx, fn)
	if running.err == nil && !running.rec.Deleting {
		ctx, cancel := context.WithTimeout(ctx, landWait)
		defer cancel()
		for !store.holds(key.Key, running.rec.UID) && ctx.Err() == nil {
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}
	f.mu.Lock()
	delete(f.m, key)
	f.mu.Unlock()
	// Who took the answer of a Sandbox that has come and gone looks again.
	store.notify(key.Key)
}

func (fl *flight) run(ctx context.Context, fn func(context.Context) (*Record, error)) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	defer close(fl.done)
	defer func() {
		if p := recover(); p != nil {
			fl.err = fmt.Errorf("making a session panicked: %v", p)
		}
	}()
	fl.rec, fl.err = fn(ctx)
}
