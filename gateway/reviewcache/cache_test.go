package reviewcache

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// asker counts its questions and answers as it is set.
type asker struct {
	asked   atomic.Int64
	allowed bool
	err     error
}

func (a *asker) ask(context.Context) (string, bool, error) {
	a.asked.Add(1)
	return "answer", a.allowed, a.err
}

// answer gets the answer for a key, which must not fail.
func answer[K comparable](t *testing.T, c *Cache[K, string], key K, a *asker) (allowed bool) {
	t.Helper()
	_, allowed, err := c.Get(t.Context(), key, a.ask)
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	return allowed
}

func TestAnswersExpire(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		asker *asker
		after time.Duration
		asked int64 // questions after the second Get
	}{
		"allow, just before": {&asker{allowed: true}, AllowTTL - 1, 1},
		"allow, at its end":  {&asker{allowed: true}, AllowTTL, 2},
		"deny, just before":  {&asker{}, DenyTTL - 1, 1},
		"deny, at its end":   {&asker{}, DenyTTL, 2},
		"failure":            {&asker{err: errors.New("away")}, 0, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &clock{now: time.Unix(1, 0)}
			cache := New[string, string](10, c.Now)
			for i := range 2 {
				_, allowed, err := cache.Get(t.Context(), "k", tc.asker.ask)
				if allowed != tc.asker.allowed || !errors.Is(err, tc.asker.err) {
					t.Errorf("Get %d: allowed %v, error %v", i, allowed, err)
				}
				c.add(tc.after)
			}
			if got := tc.asker.asked.Load(); got != tc.asked {
				t.Errorf("asked %d times, want %d", got, tc.asked)
			}
		})
	}
}

// A right that was taken away is gone after the next question, whatever was
// remembered before.
func TestNewAnswerReplacesTheOther(t *testing.T) {
	t.Parallel()
	c := &clock{now: time.Unix(1, 0)}
	cache := New[string, string](10, c.Now)
	a := &asker{allowed: true}
	answer(t, cache, "k", a)
	c.add(AllowTTL)
	a.allowed = false
	if _, allowed, _ := cache.Get(t.Context(), "k", a.ask); allowed {
		t.Error("still allowed")
	}
	c.add(DenyTTL)
	a.allowed = true
	if _, allowed, _ := cache.Get(t.Context(), "k", a.ask); !allowed {
		t.Error("still denied")
	}
}

// A flood of bad keys is bounded and pushes out no good one.
func TestDenialsPushOutNoPermission(t *testing.T) {
	t.Parallel()
	c := &clock{now: time.Unix(1, 0)}
	cache := New[int, string](10, c.Now)
	good, bad := &asker{allowed: true}, &asker{}
	answer(t, cache, -1, good)
	for i := range 1000 {
		answer(t, cache, i, bad)
	}
	answer(t, cache, -1, good)
	if got := good.asked.Load(); got != 1 {
		t.Errorf("the good key was asked for %d times, want once", got)
	}
	if n := len(cache.deny); n != 10 {
		t.Errorf("%d denials are remembered, want 10", n)
	}
}

// What has expired makes room before anything that has not.
func TestExpiredEntriesMakeRoom(t *testing.T) {
	t.Parallel()
	c := &clock{now: time.Unix(1, 0)}
	cache := New[int, string](3, c.Now)
	a := &asker{allowed: true}
	answer(t, cache, 0, a)
	answer(t, cache, 1, a)
	c.add(AllowTTL - 1)
	answer(t, cache, 2, a)
	c.add(1) // 0 and 1 expire
	answer(t, cache, 3, a)
	answer(t, cache, 2, a)
	if got := a.asked.Load(); got != 4 {
		t.Errorf("asked %d times, want 4: the entry that had not expired stays", got)
	}
}

// Many who ask at the same time are one question, and one that gives up doesn't
// take the answer from the others.
func TestConcurrentQuestionsAreOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cache := New[string, string](10, time.Now)
		var asked atomic.Int64
		ask := func(ctx context.Context) (string, bool, error) {
			asked.Add(1)
			<-time.After(time.Second)
			return "answer", true, ctx.Err()
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			if _, _, err := cache.Get(ctx, "k", ask); !errors.Is(err, context.Canceled) {
				t.Errorf("the one that gave up got %v", err)
			}
		}()
		synctest.Wait()
		for range 20 {
			go func() {
				if v, allowed, err := cache.Get(t.Context(), "k", ask); v != "answer" || !allowed || err != nil {
					t.Errorf("%q %v %v", v, allowed, err)
				}
			}()
		}
		synctest.Wait()
		cancel()
		<-time.After(2 * time.Second)
		if got := asked.Load(); got != 1 {
			t.Errorf("asked %d times, want once", got)
		}
	})
}

// A question that panics is a failure of those who asked it.
func TestPanicIsAFailure(t *testing.T) {
	t.Parallel()
	cache := New[string, string](10, time.Now)
	_, allowed, err := cache.Get(t.Context(), "k", func(context.Context) (string, bool, error) { panic("a bug") })
	if allowed || err == nil {
		t.Errorf("allowed %v, error %v; want a failure", allowed, err)
	}
}
