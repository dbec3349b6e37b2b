package cancellation

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestCancelMeansExactlyOneCall(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 0)
	r := NewRegistry(func() time.Time { return now })
	call := Call{Session: "s", ID: "1"}
	begin := func() (context.Context, func(bool)) {
		ctx, cancel := context.WithCancelCause(t.Context())
		return ctx, r.Begin(call, cancel)
	}

	first, endFirst := begin()
	if r.Cancel(call) != Cancelled || !errors.Is(context.Cause(first), ErrNotified) {
		t.Error("the only call was not cancelled")
	}
	second, endSecond := begin()
	if r.Cancel(call) != Several || second.Err() != nil {
		t.Error("one of two calls of the same name was cancelled")
	}
	endFirst(false)
	if r.Cancel(Call{Session: "s", ID: "2"}) != Unknown || r.Cancel(Call{Session: "t", ID: "1"}) != Unknown || second.Err() != nil {
		t.Error("a call of another name was cancelled")
	}
	endSecond(false)
	if r.Cancel(call) != Unknown || len(r.calls) != 0 {
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
	r.Begin(call, cancel)(true)

	other, cancel := context.WithCancelCause(t.Context())
	defer r.Begin(call, cancel)(false)
	if r.Cancel(call) != Gone || other.Err() != nil {
		t.Error("the other call was cancelled")
	}
	if r.Cancel(call) != Cancelled {
		t.Error("the second notification means the other call")
	}

	_, gone := context.WithCancelCause(t.Context())
	r.Begin(call, gone)(true)
	now = now.Add(goneFor + 1)
	if r.Cancel(call) != Cancelled {
		t.Error("a disconnect of long ago kept a call from being cancelled")
	}
}

func TestDisconnectsAreBounded(t *testing.T) {
	t.Parallel()
	r := NewRegistry(func() time.Time { return time.Unix(1, 0) })
	for i := range 3 * maxGone {
		_, cancel := context.WithCancelCause(t.Context())
		r.Begin(Call{ID: string(rune(i))}, cancel)(true)
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
		{"alice", "s", "1"}, {"alice", "s", `"1"`}, {"alice", "s1", ""}, {"alices", "", "1"}, {"alic", "es", "1"}, {"bob", "s", "1"}, {},
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
