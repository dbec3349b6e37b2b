package artifactstore

import (
	"context"
	"sync/atomic"
	"time"
)

// watchdog ends a context when nothing moves for so long.
type watchdog struct {
	timer   *time.Timer
	after   time.Duration
	reading atomic.Bool
}

// watch returns a context that ends with errStalled, or with errAgentStalled if
// it is the file that doesn't come.
func watch(ctx context.Context, after time.Duration) (context.Context, *watchdog, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watchdog{after: after}
	w.timer = time.AfterFunc(after, func() {
		if w.reading.Load() {
			cancel(errAgentStalled)
			return
		}
		cancel(errStalled)
	})
	return ctx, w, func(cause error) {
		w.timer.Stop()
		cancel(cause)
	}
}

// moved begins the time anew.
func (w *watchdog) moved() { w.timer.Reset(w.after) }

// reads says that the file is waited for, until the function that it returns is
// called.
func (w *watchdog) reads() (done func()) {
	w.reading.Store(true)
	w.moved()
	return func() {
		w.reading.Store(false)
		w.moved()
	}
}
