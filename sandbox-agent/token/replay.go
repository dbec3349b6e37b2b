package token

import (
	"errors"
	"sync"
)

// Entries of one bucketSpan of expiry times are forgotten together.
const bucketSpan = 8 // seconds

// maxSeen bounds the cache: some 30 bytes each, for a rate of 2,000 calls a
// second kept for a token's whole life.
const maxSeen = 128 << 10

var errTooMany = errors.New("too many tokens within a minute")

// replayCache remembers token ids until their tokens have expired. Only signed
// tokens get here, so no stranger can fill it. The zero value is ready.
type replayCache struct {
	mu      sync.Mutex
	count   int
	buckets map[int64]map[[16]byte]struct{} // by expiry / bucketSpan
}

// add remembers id until expires (Unix seconds). It returns ErrReplayed for
// one that it knows.
func (c *replayCache) add(id [16]byte, expires, now int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(now)
	for _, b := range c.buckets { // at most (Lifetime+skew)/bucketSpan + 1
		if _, ok := b[id]; ok {
			return ErrReplayed
		}
	}
	if c.count >= maxSeen {
		return errTooMany
	}
	slot := expires / bucketSpan
	if c.buckets == nil {
		c.buckets = map[int64]map[[16]byte]struct{}{}
	}
	if c.buckets[slot] == nil {
		c.buckets[slot] = map[[16]byte]struct{}{}
	}
	c.buckets[slot][id] = struct{}{}
	c.count++
	return nil
}

func (c *replayCache) forget(now int64) {
	for slot, b := range c.buckets {
		if (slot+1)*bucketSpan <= now {
			c.count -= len(b)
			delete(c.buckets, slot)
		}
	}
}
