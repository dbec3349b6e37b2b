// Package keyring follows the Secret that holds the signing keys.
package keyring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agent "github.com/berth-dev/berth/sandbox-agent/client"
)

// +kubebuilder:rbac:groups="",namespace=berth-system,resources=secrets,resourceNames=berth-signing-key,verbs=get;list;watch

// Ring follows one Secret and hands each valid version of it to a function. An
// empty or unreadable version is refused: with none before it, Run fails; with
// one, that one stays in use and the log says so.
type Ring struct {
	namespace, name string
	log             *slog.Logger
	use             func(*agent.Signer)

	mu     sync.Mutex
	loaded bool
	first  chan error
}

// New returns a ring that gives its keys to use, from one goroutine.
func New(namespace, name string, log *slog.Logger, use func(*agent.Signer)) *Ring {
	return &Ring{namespace: namespace, name: name, log: log, use: use, first: make(chan error, 1)}
}

// Run follows the Secret until ctx ends. A Secret that does not exist is waited
// for: the controller makes it.
func (r *Ring) Run(ctx context.Context, c client.WithWatch) {
	// The role grants this one name; a list or watch must ask for just that.
	failed := func(ctx context.Context, err error) error {
		if err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, "Signing key Secret could not be watched; trying again", "namespace", r.namespace, "name", r.name, "error", err)
		}
		return err
	}
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, r.name).String()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			list := &corev1.SecretList{}
			return list, failed(ctx, c.List(ctx, list, &client.ListOptions{Namespace: r.namespace, Raw: &o}))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			w, err := c.Watch(ctx, &corev1.SecretList{}, &client.ListOptions{Namespace: r.namespace, Raw: &o})
			return w, failed(ctx, err)
		},
	}
	reflector := cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(lw, c),
		&corev1.Secret{}, r, cache.ReflectorOptions{Name: "signing-key"})
	reflector.RunWithContext(ctx)
}

// Wait returns once the first keys are in use, and an error if the Secret is
// there and holds none that can be used.
func (r *Ring) Wait(ctx context.Context) error {
	select {
	case err := <-r.first:
		return err
	case <-ctx.Done():
		return fmt.Errorf("secret %s/%s with the signing key did not appear: is the controller running? %w", r.namespace, r.name, ctx.Err())
	}
}

// Add implements cache.ReflectorStore.
func (r *Ring) Add(obj any) error { return r.take(obj) }

// Update implements cache.ReflectorStore.
func (r *Ring) Update(obj any) error { return r.take(obj) }

// Delete implements cache.ReflectorStore. Pods still know the keys, so they
// stay in use.
func (r *Ring) Delete(any) error {
	r.log.Error("Signing key Secret was deleted; the keys read before stay in use", "namespace", r.namespace, "name", r.name)
	return nil
}

// Resync implements cache.ReflectorStore.
func (r *Ring) Resync() error { return nil }

// Replace implements cache.ReflectorStore.
func (r *Ring) Replace(objs []any, _ string) error {
	var errs []error
	for _, obj := range objs {
		errs = append(errs, r.take(obj))
	}
	return errors.Join(errs...)
}

// take puts a version of the Secret to use. It never fails towards the
// reflector, which would only list again.
func (r *Ring) take(obj any) error {
	secret, ok := obj.(*corev1.Secret)
	if !ok || secret.Namespace != r.namespace || secret.Name != r.name {
		return nil
	}
	signer, err := agent.NewSigner(secret.Data)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.use(signer)
		r.log.Info("Read signing keys", "newest", signer.NewestKeyID(), "keys", len(secret.Data))
	case r.loaded:
		r.log.Error("Refused a new version of the signing key Secret; the keys read before stay in use", "error", err)
		return nil
	default:
		err = fmt.Errorf("secret %s/%s can't be used: %w", r.namespace, r.name, err)
	}
	if !r.loaded {
		r.loaded = err == nil
		select {
		case r.first <- err:
		default:
		}
	}
	return nil
}
