package session

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

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

// Set makes r the record of its session, and tells those who wait for it.
func (s *Store) Set(r *Record) {
	s.mu.Lock()
	s.records[r.Key] = r
	if uid, ok := s.ended[r.Key]; ok && uid != r.UID {
		delete(s.ended, r.Key)
	}
	s.mu.Unlock()
	s.notify(r.Key)
}

// Drop forgets a session that has ended, and tells those who wait for it.
func (s *Store) Drop(key Key) {
	s.mu.Lock()
	delete(s.records, key)
	delete(s.ended, key)
	s.mu.Unlock()
	s.notify(key)
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

// wake returns a watcher that signals on a channel of capacity 1.
func wake(c chan<- struct{}) func() {
	return func() {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
