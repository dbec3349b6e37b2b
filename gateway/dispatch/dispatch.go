// Package dispatch carries one call to the agent of one session's pod.
//
// It decides when a call may be repeated, and the rule is short: a command that
// may have started is never sent again. So a call is repeated only if not one
// byte of it left, or once for each answer that an agent gives before it runs
// anything: 401 (another pod has this address), 409 (a fresh agent that must be
// told its session) and 410 or 503 draining (this pod takes no more).
package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// Agent is what dispatch needs of the agents' client.
type Agent interface {
	Bind(ctx context.Context, pod client.Pod, s client.Session) error
	Exec(ctx context.Context, pod client.Pod, request client.ExecRequest, commandTimeout time.Duration) (*client.ExecResult, error)
	Export(ctx context.Context, pod client.Pod, path string) (*client.Artifact, error)
	ReadArtifact(ctx context.Context, pod client.Pod, id string, span client.Span, budget int64) (*client.Reading, error)
}

// Sessions finds sessions.
type Sessions interface {
	Resolve(ctx context.Context, req session.Request) (*session.Record, error)
}

// Records is the store behind Sessions.
type Records interface {
	Get(key session.Key) (*session.Record, bool)
	Watch(key session.Key, changed func()) (stop func())
	Suspect(r *session.Record)
}

// Dispatcher carries calls.
type Dispatcher struct {
	agent    Agent
	sessions Sessions
	records  Records
	log      *slog.Logger
	observe  func(kind string)
}

// New returns a dispatcher. observe is told the kind of each trouble with an
// agent, one of the Trouble constants.
func New(agent Agent, sessions Sessions, records Records, log *slog.Logger, observe func(kind string)) *Dispatcher {
	return &Dispatcher{agent: agent, sessions: sessions, records: records, log: log, observe: observe}
}

// Kinds of trouble with an agent.
const (
	TroubleNotSent      = "not_sent"
	TroubleLost         = "lost"
	TroubleUnauthorized = "unauthorized"
	TroubleGone         = "gone"
	TroubleBadAnswer    = "bad_answer"
	TroubleTimeout      = "timeout"
)

// returnWait is how long a call that could not be sent waits for the cluster to
// notice what its agent's end means, such as a container that restarts.
const returnWait = 3 * time.Second

// attempt is one call under way: what it has been through.
type attempt struct {
	bound  bool
	denied bool
	moved  bool
	unsent int
	// notice says what was lost before this call, and is empty if nothing was.
	notice string
}

// call resolves the session and runs send against its pod, repeating as far as
// the package's rule allows.
func (d *Dispatcher) call(ctx context.Context, req session.Request, send func(context.Context, *session.Record) error) (notice string, err error) {
	var a attempt
	for {
		rec, err := d.sessions.Resolve(ctx, req)
		if err != nil {
			if ctx.Err() != nil {
				err = cancelled(ctx, err)
			}
			return a.notice, err
		}
		err = d.while(ctx, rec, send)
		if errors.Is(err, client.ErrSessionRequired) && !a.bound {
			a.bound = true
			if err = d.agent.Bind(ctx, rec.Pod(), rec.Session()); err == nil {
				a.notice = d.loss(rec)
				err = d.while(ctx, rec, send)
			}
		}
		if err == nil {
			return a.notice, nil
		}
		if !d.again(ctx, &a, &req, rec, err) {
			return a.notice, d.explain(ctx, rec, err)
		}
	}
}

// again tells whether the call may be sent once more, and prepares for it.
func (d *Dispatcher) again(ctx context.Context, a *attempt, req *session.Request, rec *session.Record, err error) bool {
	if ctx.Err() != nil {
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
		again := !a.moved
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
	default:
		return false
	}
}

// replacedGrace is what a pod that was replaced gets to answer: it may be
// finishing what it runs, or be about to say that it runs nothing.
const replacedGrace = 5 * time.Second

// while runs send and cancels it when the session ends or its pod is gone, so
// that nobody waits out a time-out for a command that is dead.
func (d *Dispatcher) while(ctx context.Context, rec *session.Record, send func(context.Context, *session.Record) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var replaced sync.Once
	stop := d.records.Watch(rec.Key, func() {
		now, ok := d.records.Get(rec.Key)
		switch {
		case !ok || now.UID != rec.UID || now.Deleting:
			cancel(errEnded)
		case now.PodUID != rec.PodUID:
			replaced.Do(func() {
				timer := time.AfterFunc(replacedGrace, func() { cancel(errReplaced) })
				context.AfterFunc(ctx, func() { timer.Stop() })
			})
		}
	})
	defer stop()
	err := send(ctx, rec)
	if cause := context.Cause(ctx); err != nil && (errors.Is(cause, errEnded) || errors.Is(cause, errReplaced)) {
		return errors.Join(cause, err)
	}
	return err
}

// changes waits until the session's record is another one than rec.
func (d *Dispatcher) changes(ctx context.Context, rec *session.Record, timeout time.Duration) bool {
	return d.await(ctx, rec.Key, timeout, func(now *session.Record, ok bool) bool {
		return !ok || now.UID != rec.UID || now.PodUID != rec.PodUID || now.Ready != rec.Ready || now.Termination != rec.Termination
	})
}

// await waits until a session's record is as done wants it; ok tells done whether
// there is one.
func (d *Dispatcher) await(ctx context.Context, key session.Key, timeout time.Duration, done func(now *session.Record, ok bool) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	changed := make(chan struct{}, 1)
	defer d.records.Watch(key, func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	for !done(d.records.Get(key)) {
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
