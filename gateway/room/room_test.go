package room

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/gateway/cancellation"
)

// R21: large answers wait for each other's room until they have been sent, and
// not for ever.
func TestRoomIsHeldUntilTheAnswerWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := New(100, 100)
		request := func() (context.Context, context.CancelFunc) {
			scope, answered := context.WithCancel(t.Context())
			return cancellation.WithScope(t.Context(), scope), answered
		}
		first, answered := request()
		second, done := request()
		defer done()
		if err := room.Admit(first, 1000); err != nil { // more than there is: all of it
			t.Fatal(err)
		}
		time.AfterFunc(10*time.Second, answered)
		start := time.Now()
		if err := room.Admit(second, 60); err != nil || time.Since(start) != 10*time.Second {
			t.Errorf("error %v after %s, want room after 10 s", err, time.Since(start))
		}
		start = time.Now()
		if err := room.Admit(second, 60); !errors.Is(err, ErrFull) || time.Since(start) != wait {
			t.Errorf("error %v after %s, want ErrFull after %s", err, time.Since(start), wait)
		}
	})
}

func TestRoomIsNotTakenByWhoGoes(t *testing.T) {
	room := New(100, 100)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := room.Admit(ctx, 60); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if err := room.Admit(t.Context(), 100); err != nil {
		t.Errorf("error %v, want all the room", err)
	}
}

// The calls of a batch share an end: one that waited for another's room would
// wait for itself, and everybody behind it too.
func TestRoomIsNotAwaitedInABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := New(100, 100)
		scope, answered := context.WithCancel(t.Context())
		batch := cancellation.WithBatch(cancellation.WithScope(t.Context(), scope))
		if err := room.Admit(batch, 60); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := room.Admit(batch, 60); !errors.Is(err, ErrFull) || time.Since(start) != 0 {
			t.Errorf("error %v after %s, want ErrFull at once", err, time.Since(start))
		}
		answered()
		synctest.Wait()
		if err := room.Admit(batch, 60); err != nil {
			t.Errorf("error %v once the first was answered, want room", err)
		}
	})
}
