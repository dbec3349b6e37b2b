package dispatch

import (
	"context"
	"slices"
	"time"

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

// othersWait is what an agent gets to tell of calls: more would keep a call running
// that is to be ended.
const othersWait = time.Second

// Others tells whether the agent of a session knows of a call of that key besides the
// one of that id. An agent that isn't ready, or doesn't say, knows of none.
func (d *Dispatcher) Others(ctx context.Context, req session.Request, key, id string) bool {
	rec, ok := d.records.Get(req.Key)
	if !ok || !rec.Ready || !req.Caller.Owns(rec.Owner) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, othersWait)
	defer cancel()
	ids, err := d.agent.Calls(ctx, rec.Pod(), key)
	if err != nil {
		d.log.InfoContext(ctx, "Agent didn't tell of its calls", "namespace", rec.Namespace, "session", rec.Name, "podUID", rec.PodUID, "error", err)
		return false
	}
	return slices.ContainsFunc(ids, func(other string) bool { return other != id })
}
