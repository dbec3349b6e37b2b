package room

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/cancellation"
)

func as(t *testing.T, name string) context.Context {
	return authn.WithCaller(t.Context(), &authn.Caller{User: authenticationv1.UserInfo{Username: name}})
}

// What one caller holds, and what more it waits for, is in nobody else's way.
func TestOneCallerLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		room := New(100, 60)
		first, err := room.Take(as(t, "alice"), 100) // all that it may have
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			go func() {
				if _, err := room.Take(as(t, "alice"), 1); !errors.Is(err, ErrFull) {
					t.Errorf("error %v, want ErrFull", err)
				}
			}()
		}
		synctest.Wait()
		start := time.Now()
		share, err := room.Take(as(t, "bob"), 40)
		if err != nil || time.Since(start) != 0 {
			t.Fatalf("error %v after %s, want room at once", err, time.Since(start))
		}
		<-time.After(wait)
		synctest.Wait()
		first.Keep(10)
		if again, err := room.Take(as(t, "alice"), 50); err != nil || time.Since(start) != wait {
			t.Errorf("error %v after %s, want what was given back", err, time.Since(start))
		} else {
			again.Release()
		}
		first.Release()
		share.Release()
		if len(room.callers) != 0 {
			t.Errorf("%d callers are remembered of a room that nobody uses", len(room.callers))
		}
	})
}

// A batch's calls, and those that give up, leave nothing behind, whatever was in
// their way.
func TestRoomOfCallsThatFoundNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		room := New(100, 60)
		mine, err := room.Take(as(t, "alice"), 60)
		if err != nil {
			t.Fatal(err)
		}
		batch := func(name string) context.Context {
			scope, end := context.WithCancel(t.Context())
			t.Cleanup(end)
			return cancellation.WithBatch(cancellation.WithScope(as(t, name), scope))
		}
		for name, ctx := range map[string]context.Context{"its own": batch("alice"), "all": batch("bob")} {
			if err := room.Admit(ctx, 50); !errors.Is(err, ErrFull) {
				t.Errorf("%s: error %v, want ErrFull", name, err)
			}
		}
		for _, name := range []string{"alice", "bob"} {
			ctx, cancel := context.WithTimeout(as(t, name), time.Second)
			defer cancel()
			if err := room.Admit(ctx, 50); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: error %v, want its own", name, err)
			}
		}
		mine.Release()
		all := []*Share{}
		for _, name := range []string{"alice", "bob"} {
			share, ok := room.try(as(t, name), 50)
			if !ok {
				t.Fatalf("%s: no room was given back", name)
			}
			all = append(all, share)
		}
		for _, share := range all {
			share.Release()
		}
		if len(room.callers) != 0 {
			t.Errorf("%d callers are remembered of a room that nobody uses", len(room.callers))
		}
	})
}
