package dispatch

import (
	"context"

	"github.com/berth-dev/berth/gateway/session"
)

// Cancel ends the call of that key in a session that exists, whichever replica
// carries it: its agent is where all meet. It makes no session. It matches
// client.ErrNotFound if no such call is under way, and client.ErrManyCalls if there
// are several, of which it ends none.
func (d *Dispatcher) Cancel(ctx context.Context, req session.Request, key string) error {
	req.Mode = session.Known
	_, err := d.call(ctx, req, harmless, func(ctx context.Context, rec *session.Record) error {
		return d.agent.CancelCall(ctx, rec.Pod(), key)
	})
	return err
}
