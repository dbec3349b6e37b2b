package cancellation

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestNotificationMeansExactlyOneCall(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 0)
	r := NewRegistry(func() time.Time { return now })
	call := Call{Session: "s", ID: "1"}
	begin := func(id string) (context.Context, func(bool)) {
		ctx, cancel := context.WithCancelCause(t.Context())
		return ctx, r.Begin(call, id, cancel)
	}

	first, endFirst := begin("a")
	if id, found := r.Find(call); found != One || id != "a" || first.Err() != nil {
		t.Errorf("found %v %q, error %v; want the only call, which goes on until it is cancelled", found, id, first.Err())
	}
	second, endSecond := begin("b")
	if _, found := r.Find(call); found != Several {
		t.Errorf("found %v of two calls of the same name, want several", found)
	}
	r.Cancel(call, "a")
	if !errors.Is(context.Cause(first), ErrNotified) || second.Err() != nil {
		t.Errorf("causes %v and %v, want the first to be cancelled alone", context.Cause(first), context.Cause(second))
	}
	endFirst(false)
	r.Cancel(call, "a") // which has ended
	for _, other := range []Call{{Session: "s", ID: "2"}, {Session: "t", ID: "1"}, {Caller: "bob", Session: "s", ID: "1"}} {
		if _, found := r.Find(other); found != Unknown {
			t.Errorf("found %v of %+v, want none", found, other)
		}
		r.Cancel(other, "b")
	}
	if id, found := r.Find(call); found != One || id != "b" || second.Err() != nil {
		t.Errorf("found %v %q, error %v; want the second, untouched", found, id, second.Err())
	}
	endSecond(false)
	if _, found := r.Find(call); found != Unknown || len(r.calls) != 0 {
		t.Error("a finished call is still known")
	}
}

// A client that goes and notifies means the call that went, not another
// client's of the same name.
func TestNotificationAfterDisconnect(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 0)
	r := NewRegistry(func() time.Time { return now })
	call := Call{ID: "1"}
	_, cancel := context.WithCancelCause(t.Context())
	r.Begin(call, "a", cancel)(true)

	_, cancel = context.WithCancelCause(t.Context())
	defer r.Begin(call, "b", cancel)(false)
	if _, found := r.Find(call); found != Gone {
		t.Errorf("found %v, want the call that went", found)
	}
	if id, found := r.Find(call); found != One || id != "b" {
		t.Errorf("a second notification found %v %q, want the other call", found, id)
	}

	_, gone := context.WithCancelCause(t.Context())
	r.Begin(call, "c", gone)(true)
	now = now.Add(goneFor + 1)
	if _, found := r.Find(call); found != One {
		t.Errorf("found %v, want the call that is under way: the disconnect is of long ago", found)
	}
}

func TestDisconnectsAreBounded(t *testing.T) {
	t.Parallel()
	r := NewRegistry(func() time.Time { return time.Unix(1, 0) })
	for i := range 3 * maxGone {
		_, cancel := context.WithCancelCause(t.Context())
		r.Begin(Call{ID: string(rune(i))}, "a", cancel)(true)
	}
	if n := len(r.gone); n > maxGone {
		t.Errorf("%d disconnects are remembered, want at most %d", n, maxGone)
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	scope, cancel := context.WithCancelCause(t.Context())
	ctx, stop := Follow(WithScope(t.Context(), scope))
	defer stop()
	cancel(ErrNotified)
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, ErrNotified) {
		t.Errorf("cause %v, want %v", cause, ErrNotified)
	}
}

// Every part of a name makes another key, also where the parts' texts are the same
// one after the other.
func TestKeysOfCallsDiffer(t *testing.T) {
	t.Parallel()
	keys := map[string]Call{}
	for _, call := range []Call{
		{Caller: "alice", Session: "s", ID: "1"}, {Caller: "alice", Session: "s", ID: `"1"`}, {Caller: "alice", Session: "s1"}, {Caller: "alices", ID: "1"},
		{Caller: "alic", Session: "es", ID: "1"}, {Caller: "bob", Session: "s", ID: "1"}, {},
	} {
		key := call.Key()
		if other, ok := keys[key]; ok || len(key) != 64 {
			t.Errorf("key %q of %+v is that of %+v", key, call, other)
		}
		keys[key] = call
	}
	for key, call := range keys {
		if call.Key() != key {
			t.Errorf("%+v has two keys", call)
		}
	}
}
