package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
)

// +kubebuilder:rbac:groups=berth.dev,resources=sandboxes,verbs=get;list;watch

// Store holds a Record of every Sandbox, fed by a watch, and tells those who
// wait when one changes. It is a reflector's store rather than an informer's
// cache because an informer keeps whole objects, which is most of the memory
// that ten thousand idle sessions cost.
type Store struct {
	mu       sync.Mutex
	records  map[Key]*Record
	watchers map[Key]map[*watcher]struct{}
	// ended are UIDs that this gateway deleted and still holds a record of: the
	// watch has not told yet.
	ended  map[Key]types.UID
	synced chan struct{}
	once   sync.Once
}

// watcher is told that its key changed.
type watcher struct{ changed func() }

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{
		records:  make(map[Key]*Record),
		watchers: make(map[Key]map[*watcher]struct{}),
		ended:    make(map[Key]types.UID),
		synced:   make(chan struct{}),
	}
}

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

// Synced is closed once the store holds what the API server held at the start.
func (s *Store) Synced() <-chan struct{} { return s.synced }

// Len is how many Sandboxes the store holds.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.records)
}

// Get returns the record of key. One that this gateway has deleted is not
// returned again.
func (s *Store) Get(key Key) (*Record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.records[key]
	if ok && len(s.ended) > 0 && s.ended[key] == r.UID {
		return nil, false
	}
	return r, ok
}

// Watch calls changed, which must not block, after each change of key, until
// stop is called.
func (s *Store) Watch(key Key, changed func()) (stop func()) {
	w := &watcher{changed}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watchers[key] == nil {
		s.watchers[key] = make(map[*watcher]struct{}, 1)
	}
	s.watchers[key][w] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers[key], w)
		if len(s.watchers[key]) == 0 {
			delete(s.watchers, key)
		}
	}
}

// Suspect marks the address of r as one that failed, if it is still the one in
// use. It is asked for anew before the next call.
func (s *Store) Suspect(r *Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now, ok := s.records[r.Key]; ok && now.UID == r.UID && now.samePod(r) {
		marked := *now
		marked.suspect = true
		s.records[r.Key] = &marked
	}
}

// trust takes back Suspect after the API server confirmed the address.
func (s *Store) trust(r *Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now, ok := s.records[r.Key]; ok && now.suspect && now.UID == r.UID && now.samePod(r) {
		trusted := *now
		trusted.suspect = false
		s.records[r.Key] = &trusted
	}
}

// end hides the record of a Sandbox that this gateway has deleted until the
// watch tells of its end, for which it waits at most timeout.
func (s *Store) end(ctx context.Context, key Key, uid types.UID, timeout time.Duration) {
	s.mu.Lock()
	s.ended[key] = uid
	s.mu.Unlock()
	s.notify(key)

	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	changed := make(chan struct{}, 1)
	defer s.Watch(key, wake(changed))()
	for s.holds(key, uid) {
		select {
		case <-changed:
		case <-ctx.Done():
			return // still hidden
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended[key] == uid {
		delete(s.ended, key)
	}
}

func (s *Store) holds(key Key, uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.records[key]
	return ok && r.UID == uid
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
	r := NewRecord(sandbox)
	s.mu.Lock()
	s.records[r.Key] = r
	if uid, ok := s.ended[r.Key]; ok && uid != r.UID {
		delete(s.ended, r.Key)
	}
	s.mu.Unlock()
	s.notify(r.Key)
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
	key := Key{Namespace: m.GetNamespace(), Name: m.GetName()}
	s.mu.Lock()
	delete(s.records, key)
	delete(s.ended, key)
	s.mu.Unlock()
	s.notify(key)
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

// notify calls the watchers of key outside the lock: they may read the store.
func (s *Store) notify(key Key) {
	s.mu.Lock()
	if len(s.watchers[key]) == 0 {
		s.mu.Unlock()
		return
	}
	watchers := make([]*watcher, 0, len(s.watchers[key]))
	for w := range s.watchers[key] {
		watchers = append(watchers, w)
	}
	s.mu.Unlock()
	for _, w := range watchers {
		w.changed()
	}
}

var _ cache.TransformingStore = (*Store)(nil)

// wake returns a watcher that signals on a channel of capacity 1.
func wake(c chan<- struct{}) func() {
	return func() {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
