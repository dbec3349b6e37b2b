package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// returnWait is how long a call that could not be sent waits for the cluster to
// notice what its agent's end means, such as a container that restarts.
const returnWait = 3 * time.Second

// repeat says whether a call is sent once more whose connection broke.
type repeat int

const (
	never repeat = iota
	// harmless: the call has no effect.
	harmless
	// inPlace: the agent that got it knows it again.
	inPlace
)

// attempt is one call under way: what it has been through.
type attempt struct {
	repeat repeat
	// lost is the call's first connection that broke, if it was sent once more,
	// and lostWith the session then.
	lost     error
	lostWith *session.Record
	denied   bool
	moved    bool
	unsent   int
	// notice says what was lost before this call, and is empty if nothing was.
	notice string
}

// tied tells whether the call must not go but where it may have been before.
func (a *attempt) tied() bool { return a.lost != nil && a.repeat == inPlace }

// call resolves the session and runs send against its pod, repeating as far as
// the package's rule allows.
func (d *Dispatcher) call(ctx context.Context, req session.Request, repeat repeat, send func(context.Context, *session.Record) error) (notice string, err error) {
	a := attempt{repeat: repeat}
	for {
		rec, err := d.resolve(ctx, req)
		if err == nil {
			err = d.send(ctx, &a, rec, send)
			if err == nil {
				return a.notice, nil
			}
			if d.again(ctx, &a, &req, rec, err) {
				continue
			}
		}
		switch {
		case a.tied() && ctx.Err() == nil:
			return a.notice, d.lost(ctx, a.lostWith, a.lost)
		case rec != nil:
			return a.notice, d.explain(ctx, rec, err)
		case ctx.Err() != nil:
			return a.notice, cancelled(ctx, err)
		default:
			return a.notice, err
		}
	}
}

// send runs send once, and once more if the agent must be told its session first.
func (d *Dispatcher) send(ctx context.Context, a *attempt, rec *session.Record, send func(context.Context, *session.Record) error) error {
	if a.tied() && (a.lostWith.PodUID != rec.PodUID || endedAnew(a.lostWith, rec)) {
		return errElsewhere
	}
	err := d.while(ctx, rec, send)
	if !errors.Is(err, client.ErrSessionRequired) || errors.Is(err, errSpent) {
		return err
	}
	if a.tied() {
		return errElsewhere // a container that has begun anew knows nothing of the call
	}
	if err = d.agent.Bind(ctx, rec.Pod(), rec.Session()); err != nil {
		return err
	}
	a.notice = d.loss(rec)
	return d.while(ctx, rec, send)
}

// again tells whether the call may be sent once more, and prepares for it.
func (d *Dispatcher) again(ctx context.Context, a *attempt, req *session.Request, rec *session.Record, err error) bool {
	if ctx.Err() != nil || errors.Is(err, errSpent) {
		return false
	}
	switch {
	case errors.Is(err, client.ErrUnauthorized):
		d.observe(TroubleUnauthorized)
		d.records.Suspect(rec)
		again := !a.denied
		a.denied = true
		return again
	case errors.Is(err, client.ErrGone), errors.Is(err, client.ErrDraining):
		d.observe(TroubleGone)
		d.records.Suspect(rec)
		again := !a.moved && !a.tied() // there is nowhere else to ask
		a.moved, req.NotPod = true, rec.PodUID
		return again
	case errors.Is(err, client.ErrNoKey):
		d.observe(TroubleNotSent)
		return false
	case errors.Is(err, client.ErrNotSent):
		d.observe(TroubleNotSent)
		d.records.Suspect(rec)
		a.unsent++
		// The first time the address may have been old. The second time it is
		// what the API server says: worth another try only when that changes.
		return a.unsent == 1 || (a.unsent == 2 && d.changes(ctx, rec, returnWait))
	case a.repeat != never && a.lost == nil && broke(err):
		d.observe(TroubleLost)
		d.records.Suspect(rec)
		a.lost, a.lostWith = err, rec
		return true
	default:
		return false
	}
}
