package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
)

// +kubebuilder:rbac:groups=berth.dev,resources=sandboxes,verbs=get;list;watch

var _ cache.TransformingStore = (*Store)(nil)

// Run feeds the store from the API server until ctx ends, in all namespaces. It
// tries again for as long as it takes, and says so in log: a reflector is silent
// about an API server that refuses connections.
func (s *Store) Run(ctx context.Context, c client.WithWatch, log *slog.Logger) {
	failed := func(ctx context.Context, err error) error {
		if err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "Sandboxes could not be watched; trying again", "error", err)
		}
		return err
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := &berthv1alpha1.SandboxList{}
			return list, failed(ctx, c.List(ctx, list, &client.ListOptions{Raw: &o, Limit: o.Limit, Continue: o.Continue}))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := c.Watch(ctx, &berthv1alpha1.SandboxList{}, &client.ListOptions{Raw: &o})
			return w, failed(ctx, err)
		},
	}
	r := cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(lw, c),
		&berthv1alpha1.Sandbox{}, s, cache.ReflectorOptions{Name: "sandboxes"})
	r.RunWithContext(ctx)
}

// Add implements cache.ReflectorStore.
func (s *Store) Add(obj any) error { return s.put(obj) }

// Update implements cache.ReflectorStore.
func (s *Store) Update(obj any) error { return s.put(obj) }

// Resync implements cache.ReflectorStore; nothing here depends on it.
func (s *Store) Resync() error { return nil }

func (s *Store) put(obj any) error {
	sandbox, ok := obj.(*berthv1alpha1.Sandbox)
	if !ok {
		return fmt.Errorf("session store was given a %T", obj)
	}
	s.Set(NewRecord(sandbox))
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *Store) Delete(obj any) error {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	s.Drop(Key{Namespace: m.GetNamespace(), Name: m.GetName()})
	return nil
}

// Replace implements cache.ReflectorStore: objs is all there is.
func (s *Store) Replace(objs []any, _ string) error {
	fresh := make(map[Key]*Record, len(objs))
	var errs []error
	for _, obj := range objs {
		sandbox, ok := obj.(*berthv1alpha1.Sandbox)
		if !ok {
			errs = append(errs, fmt.Errorf("session store was given a %T", obj))
			continue
		}
		r := NewRecord(sandbox)
		fresh[r.Key] = r
	}
	s.mu.Lock()
	s.records = fresh
	for key, uid := range s.ended {
		if r, ok := fresh[key]; !ok || r.UID != uid {
			delete(s.ended, key)
		}
	}
	keys := make([]Key, 0, len(s.watchers))
	for key := range s.watchers {
		keys = append(keys, key)
	}
	s.mu.Unlock()
	s.once.Do(func() { close(s.synced) })
	for _, key := range keys {
		s.notify(key)
	}
	return errors.Join(errs...)
}

// Transformer implements cache.TransformingStore: what a reflector holds for a
// moment while it lists is stripped of what Record doesn't read.
func (s *Store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if sandbox, ok := obj.(*berthv1alpha1.Sandbox); ok {
			sandbox.ManagedFields = nil
			sandbox.Annotations = nil
			sandbox.OwnerReferences = nil
		}
		return obj, nil
	}
}
