package background

import (
	"context"

	"golang.org/x/sys/unix"
)

// Cancel kills a process with all that it started, and notes that this was asked
// for. One that has ended stays as it is.
func (r *Registry) Cancel(ctx context.Context, id string) error {
	e, err := r.control(id)
	if err != nil {
		return err
	}
	e.mu.Lock()
	running := e.running.Load()
	e.cancelled = e.cancelled || running
	e.mu.Unlock()
	if !running {
		return nil
	}
	return r.Signal(ctx, id, unix.SIGKILL)
}
