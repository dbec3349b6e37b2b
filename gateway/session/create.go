package session

import (
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
func (r *Resolver) create(ctx context.Context, req Request) (*Record, error) {
	owner := req.Caller.Owner()
	return r.creates.do(ctx, flightKey{req.Key, owner}, func(ctx context.Context) (*Record, error) {
		sandbox := r.newSandbox(req.Key, owner)
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

func (r *Resolver) newSandbox(key Key, owner string) *berthv1alpha1.Sandbox {
	deadline := berthv1alpha1.Duration(r.options.StartDeadline.String())
	return &berthv1alpha1.Sandbox{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace,
			Name:      key.Name,
			Labels:    map[string]string{berthv1alpha1.LabelCreatedBy: berthv1alpha1.CreatedByGateway},
		},
		Spec: berthv1alpha1.SandboxSpec{
			TemplateRef:   berthv1alpha1.TemplateReference{Name: r.options.Template},
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

// flights are the creates under way, one for each key.
type flights struct {
	mu *sync.Mutex
	m  map[flightKey]*flight
}

type flightKey struct {
	Key
	owner string
}

type flight struct {
	done chan struct{}
	rec  *Record
	err  error
}

func newFlights() flights { return flights{mu: new(sync.Mutex), m: make(map[flightKey]*flight)} }

// do runs fn once for all who ask while it runs.
func (f flights) do(ctx context.Context, key flightKey, fn func(context.Context) (*Record, error)) (*Record, error) {
	f.mu.Lock()
	running, ok := f.m[key]
	if !ok {
		running = &flight{done: make(chan struct{})}
		f.m[key] = running
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
			defer cancel()
			defer func() {
				if p := recover(); p != nil {
					running.err = fmt.Errorf("making a session panicked: %v", p)
				}
				f.mu.Lock()
				delete(f.m, key)
				f.mu.Unlock()
				close(running.done)
			}()
			running.rec, running.err = fn(ctx)
		}()
	}
	f.mu.Unlock()
	select {
	case <-running.done:
		return running.rec, running.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
