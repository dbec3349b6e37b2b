package shell

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

func TestQueueIsFirstInFirstOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue{limit: 3}
		if err := q.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		var order []int
		cancelled, cancel := context.WithCancel(t.Context())
		for i := range 3 {
			ctx := t.Context()
			if i == 1 {
				ctx = cancelled
			}
			go func() {
				if q.enter(ctx) == nil {
					order = append(order, i)
					q.leave()
				}
			}()
			synctest.Wait()
		}
		if err := q.enter(t.Context()); !errors.Is(err, ErrQueueFull) {
			t.Errorf("want ErrQueueFull, got %v", err)
		}
		cancel()
		synctest.Wait()
		go func() {
			if q.enter(t.Context()) == nil { // the cancelled one's place is free
				order = append(order, 3)
				q.leave()
			}
		}()
		synctest.Wait()
		q.leave()
		synctest.Wait()
		if diff := cmp.Diff([]int{0, 2, 3}, order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
		if q.busy || len(q.waiting) != 0 {
			t.Errorf("want an empty queue, got %+v", q.waiting)
		}
		if err := q.enter(cancelled); !errors.Is(err, context.Canceled) || q.busy {
			t.Errorf("want one that was cancelled before kept out, got %v", err)
		}
	})
}
