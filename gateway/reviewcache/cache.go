// Package reviewcache remembers the API server's answers about callers: who a
// token is, and what an identity may do.
//
// An answer that allows is kept longer than one that denies, so that a right
// that was just granted works within seconds. Both kinds have their own bounded
// store: a flood of bad tokens can't push out the good ones. Concurrent questions
// about one key are one question. Failures to ask are never remembered.
package reviewcache

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Defaults of the gateway's caches (design §4).
const (
	AllowTTL   = 30 * time.Second
	DenyTTL    = 5 * time.Second
	MaxEntries = 4096
	// askTimeout bounds one question to the API server.
	askTimeout = 10 * time.Second
)

// Ask gets the answer for one key. Allowed says how long to keep it.
type Ask[V any] func(ctx context.Context) (value V, allowed bool, err error)

// Cache holds answers by key. Make one with New.
type Cache[K comparable, V any] struct {
	now func() time.Time

	mu     sync.Mutex
	allow  map[K]entry[V]
	deny   map[K]entry[V]
	flight map[K]*question[V]
	max    int
}

type entry[V any] struct {
	value   V
	expires time.Time
}

// question is one question on its way to the API server.
type question[V any] struct {
	done    chan struct{}
	value   V
	allowed bool
	err     error
}

// New returns a cache of at most max allowing and max denying answers that
// tells the time by now.
func New[K comparable, V any](maxEntries int, now func() time.Time) *Cache[K, V] {
	return &Cache[K, V]{
		now:    now,
		allow:  make(map[K]entry[V]),
		deny:   make(map[K]entry[V]),
		flight: make(map[K]*question[V]),
		max:    maxEntries,
	}
}

// Get returns the answer for key: a remembered one that has not expired, or the
// one that ask gives. ask runs detached from ctx, because others may be waiting
// for its answer too; a caller whose ctx ends stops waiting.
func (c *Cache[K, V]) Get(ctx context.Context, key K, ask Ask[V]) (value V, allowed bool, err error) {
	now := c.now()
	c.mu.Lock()
	if e, ok := c.allow[key]; ok && now.Before(e.expires) {
		c.mu.Unlock()
		return e.value, true, nil
	}
	if e, ok := c.deny[key]; ok && now.Before(e.expires) {
		c.mu.Unlock()
		return e.value, false, nil
	}
	q, asked := c.flight[key]
	if !asked {
		q = &question[V]{done: make(chan struct{})}
		c.flight[key] = q
	}
	c.mu.Unlock()

	if !asked {
		go c.answer(context.WithoutCancel(ctx), key, q, ask)
	}
	select {
	case <-q.done:
		return q.value, q.allowed, q.err
	case <-ctx.Done():
		return value, false, ctx.Err()
	}
}

// answer asks, remembers and wakes those who wait.
func (c *Cache[K, V]) answer(ctx context.Context, key K, q *question[V], ask Ask[V]) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	defer close(q.done)
	defer func() {
		if p := recover(); p != nil {
			q.err = fmt.Errorf("review panicked: %v", p)
		}
		c.keep(key, q)
	}()
	q.value, q.allowed, q.err = ask(ctx)
}

func (c *Cache[K, V]) keep(key K, q *question[V]) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.flight, key)
	delete(c.allow, key)
	delete(c.deny, key)
	switch {
	case q.err != nil:
	case q.allowed:
		c.put(c.allow, key, entry[V]{q.value, now.Add(AllowTTL)}, now)
	default:
		c.put(c.deny, key, entry[V]{q.value, now.Add(DenyTTL)}, now)
	}
}

// put makes room when m is full: first what has expired, then any one entry.
func (c *Cache[K, V]) put(m map[K]entry[V], key K, e entry[V], now time.Time) {
	if len(m) >= c.max {
		for k, old := range m {
			if !now.Before(old.expires) {
				delete(m, k)
			}
		}
	}
	if len(m) >= c.max {
		for k := range m {
			delete(m, k)
			break
		}
	}
	m[key] = e
}
