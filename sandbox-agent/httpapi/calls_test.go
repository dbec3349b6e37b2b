package httpapi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// callsAt is an empty register with a clock that the test sets.
func callsAt() (c *calls, advance func(time.Duration)) {
	now := time.Unix(1, 0)
	return newCalls(func() time.Time { return now }), func(d time.Duration) { now = now.Add(d) }
}

// begun begins a request that must be let in.
func begun(parent context.Context, t *testing.T, c *calls, key, id string) (context.Context, func()) {
	t.Helper()
	ctx, end, ok := c.begin(parent, key, id)
	if !ok {
		t.Fatalf("the request of call %s %s was not let in", key, id)
	}
	return ctx, end
}

func wasCancelled(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errCancelled) }

func TestKeyEndsExactlyOneCall(t *testing.T) {
	t.Parallel()
	c, _ := callsAt()
	first, endFirst := begun(t.Context(), t, c, "key", "a")
	other, endOther := begun(t.Context(), t, c, "other", "a")
	second, endSecond := begun(t.Context(), t, c, "key", "b")
	if n := c.cancel("key"); n != 2 || first.Err() != nil || second.Err() != nil {
		t.Errorf("%d calls, errors %v and %v; want 2 of which none is ended", n, first.Err(), second.Err())
	}
	endFirst()
	if n := c.cancel("key"); n != 1 || !wasCancelled(second) {
		t.Errorf("%d calls, cause %v; want the one that is left to be cancelled", n, context.Cause(second))
	}
	if n := c.cancel("key"); n != 1 {
		t.Errorf("a second word of it found %d, want the same call, which hasn't ended yet", n)
	}
	endSecond()
	if other.Err() != nil {
		t.Error("a call of another key was ended")
	}
	endOther()
	if len(c.live) != 0 {
		t.Errorf("%d calls are under way, want none", len(c.live))
	}
}

// A call may send several requests, one after the other or at once: all of them end.
func TestAllRequestsOfACallEnd(t *testing.T) {
	t.Parallel()
	c, _ := callsAt()
	first, endFirst := begun(t.Context(), t, c, "key", "a")
	second, endSecond := begun(t.Context(), t, c, "key", "a")
	if n := c.cancel("key"); n != 1 || !wasCancelled(first) || !wasCancelled(second) {
		t.Errorf("%d calls, causes %v and %v; want one whose requests are both cancelled", n, context.Cause(first), context.Cause(second))
	}
	endFirst()
	late, endLate := begun(t.Context(), t, c, "key", "a")
	if !wasCancelled(late) {
		t.Error("a later request of the cancelled call goes on")
	}
	endLate()
	endSecond()
}

func TestLateWordTouchesNoLaterCall(t *testing.T) {
	t.Parallel()
	c, advance := callsAt()
	_, end := begun(t.Context(), t, c, "key", "a")
	end()
	advance(wire.CallEndedSeconds*time.Second - 1)
	if n := c.cancel("key"); n != 0 {
		t.Errorf("%d calls, want none", n)
	}
	next, end := begun(t.Context(), t, c, "key", "b")
	defer end()
	if next.Err() != nil {
		t.Error("the next call of the key was ended before it began")
	}
}

func TestEarlyWordEndsTheCallThatItPrecedes(t *testing.T) {
	t.Parallel()
	for after, ended := range map[time.Duration]bool{
		0:                                     true,
		wire.CallEarlySeconds*time.Second - 1: true,
		wire.CallEarlySeconds * time.Second:   false,
		wire.CallEarlySeconds*time.Second + 1: false,
	} {
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			c, advance := callsAt()
			if n := c.cancel("key"); n != 0 {
				t.Fatalf("%d calls, want none", n)
			}
			advance(after)
			_, _, other := c.begin(t.Context(), "other", "a")
			_, _, ok := c.begin(t.Context(), "key", "a")
			if !other || ok == ended {
				t.Errorf("let in: the call %v, another %v; want %v and true", ok, other, !ended)
			}
			if _, _, ok := c.begin(t.Context(), "key", "b"); !ok {
				t.Error("the word ended a second call")
			}
		})
	}
}

// A client that hangs up and cancels means the call that went, not another client's.
func TestWordAfterADisconnectMeansTheCallThatWent(t *testing.T) {
	t.Parallel()
	for after, meant := range map[time.Duration]bool{
		wire.CallGoneSeconds*time.Second - 1: true,
		wire.CallGoneSeconds * time.Second:   false,
	} {
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			c, advance := callsAt()
			gone, hangUp := context.WithCancel(t.Context())
			_, end := begun(gone, t, c, "key", "a")
			hangUp()
			end()
			other, endOther := begun(t.Context(), t, c, "key", "b")
			defer endOther()
			advance(after)
			c.cancel("key")
			if wasCancelled(other) == meant {
				t.Errorf("the other client's call was cancelled: %v, want %v", !meant, !meant)
			}
			if c.cancel("key"); !wasCancelled(other) {
				t.Error("a second word didn't mean the other client's call")
			}
		})
	}
}

// What was cancelled by its key isn't waited for once more, though its caller goes.
func TestCancelledCallOfACallerThatGoesIsDone(t *testing.T) {
	t.Parallel()
	c, _ := callsAt()
	parent, hangUp := context.WithCancel(t.Context())
	_, end := begun(parent, t, c, "key", "a")
	c.cancel("key")
	hangUp()
	end()
	other, endOther := begun(t.Context(), t, c, "key", "b")
	defer endOther()
	if n := c.cancel("key"); n != 1 || !wasCancelled(other) {
		t.Errorf("%d calls, cause %v; want the next one cancelled", n, context.Cause(other))
	}
}

func TestPastCallsAreBounded(t *testing.T) {
	t.Parallel()
	c, _ := callsAt()
	for i := range 3 * maxPast {
		key := fmt.Sprint(i % (maxPast + maxPast/2)) // some come again
		if i%2 == 0 {
			c.cancel(key)
			continue
		}
		if _, end, ok := c.begin(t.Context(), key, "a"); ok {
			end()
		}
	}
	if len(c.past) > maxPast || len(c.order) > maxPast || len(c.live) != 0 {
		t.Errorf("%d past calls in %d places, %d under way; want at most %d and none", len(c.past), len(c.order), len(c.live), maxPast)
	}
	// The newest are still known.
	_, end := begun(t.Context(), t, c, "last", "a")
	end()
	c.cancel("last")
	begun(t.Context(), t, c, "last", "b")
}

func TestCallsOfAKeyAreBounded(t *testing.T) {
	t.Parallel()
	c, _ := callsAt()
	for i := range wire.MaxCalls + 1 {
		if n := len(c.ids("key")); n != i {
			t.Errorf("%d calls, want %d", n, i)
		}
		begun(t.Context(), t, c, "key", fmt.Sprint(i))
	}
	if n := len(c.ids("key")); n != wire.MaxCalls {
		t.Errorf("%d calls are told of, want %d", n, wire.MaxCalls)
	}
}
