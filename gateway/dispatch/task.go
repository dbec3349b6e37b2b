package dispatch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// ErrTaskLost is matched by the error for a task that ended with its pod or its
// container. The text says why.
var ErrTaskLost = errors.New("the task is lost")

// Tasks is what dispatch needs of the agents' client for what outlives its call.
type Tasks interface {
	ExecDetachable(ctx context.Context, pod client.Pod, request client.ExecRequest) (*client.ExecResult, *client.ExecState, error)
	ExecState(ctx context.Context, pod client.Pod, id string, wait time.Duration) (*client.ExecState, error)
	CancelExec(ctx context.Context, pod client.Pod, id string) error
	Process(ctx context.Context, pod client.Pod, id string) (*client.Process, error)
	CancelProcess(ctx context.Context, pod client.Pod, id string) error
}

// Place says where a task is: in a pod of that UID, since then. The agent's clock
// is the one that containers' ends are told by.
type Place struct {
	PodUID string
	Since  time.Time
}

// Where tells whether a task is in a pod of that UID, and since when.
type Where func(podUID string) (since time.Time, ok bool)

// execID names a command that may outlive its call.
func execID() string {
	id := make([]byte, 16)
	rand.Read(id) // never fails (crypto/rand)
	return "t-" + hex.EncodeToString(id)
}

// Detached is a command that goes on without its call.
type Detached struct {
	Place
	ID     string
	Notice string
}

// ExecDetachable is Exec of a command that outlives the call if it takes longer than
// after: then there is no result. Its Output isn't told.
func (d *Dispatcher) ExecDetachable(ctx context.Context, req session.Request, command Command, after time.Duration) (*client.ExecResult, *Detached, error) {
	id := execID()
	var result *client.ExecResult
	var detached *Detached
	var mayRunIn *session.Record
	notice, err := d.call(ctx, req, never, func(ctx context.Context, rec *session.Record) (err error) {
		timeout := Timeout(command.Timeout, rec.Limits)
		request := client.ExecRequest{
			Command: command.Source, Timeout: timeout.Seconds(), MaxOutputBytes: max(command.MaxOutputBytes, 0),
			ID: id, DetachAfter: after.Seconds(),
		}
		var state *client.ExecState
		result, state, err = d.agent.ExecDetachable(ctx, rec.Pod(), request)
		if older(err) {
			request.ID, request.DetachAfter = "", 0
			result, err = d.agent.Exec(ctx, rec.Pod(), request, timeout)
		}
		if err == nil && state != nil {
			detached = &Detached{Place: Place{rec.PodUID, state.Sent}, ID: id}
		}
		if mayRunIn = nil; mayRun(err) {
			mayRunIn = rec
		}
		return err
	})
	if err == nil && detached != nil && ctx.Err() != nil { // nobody is there to be given the task
		err = cancelled(ctx, ctx.Err())
	}
	switch {
	case err != nil:
		if mayRunIn != nil {
			d.abandon(ctx, mayRunIn, id)
		}
		return nil, nil, withNotice(err, notice)
	case detached != nil:
		detached.Notice = notice
		return nil, detached, nil
	default:
		result.Notice = JoinNotices(notice, result.Notice)
		return result, nil, nil
	}
}

// mayRun tells whether a call that ended so may have left a command behind: the answer
// that it was detached may have been on its way.
func mayRun(err error) bool {
	var refusal *client.Error
	return !errors.As(err, &refusal) && !errors.Is(err, client.ErrNotSent)
}

// abandonTime is what an agent gets to end a command that nobody can ask for.
const abandonTime = 2 * time.Second

// abandon ends a command whose id nobody has: else it would run, and keep others from
// running, until its time-out.
func (d *Dispatcher) abandon(ctx context.Context, rec *session.Record, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTime)
	defer cancel()
	err := d.agent.CancelExec(ctx, rec.Pod(), id)
	if err != nil && !errors.Is(err, client.ErrNotFound) { // which it is if it ended with its call
		d.log.InfoContext(ctx, "Command of a call that failed could not be ended", "namespace", rec.Namespace, "session", rec.Name, "podUID", rec.PodUID, "error", err)
	}
}

// older tells whether an agent has refused a request for a field that it doesn't
// know: then nothing ran.
func older(err error) bool {
	var refusal *client.Error
	return errors.As(err, &refusal) && refusal.Code == client.CodeBadRequest && strings.Contains(refusal.Message, `"detach_after"`)
}

// StartTask is Start that tells where the process is.
func (d *Dispatcher) StartTask(ctx context.Context, req session.Request, process client.ProcessRequest) (*client.Process, Place, string, error) {
	process.ID = processID()
	var started *client.Process
	var place Place
	notice, err := d.call(ctx, req, inPlace, func(ctx context.Context, rec *session.Record) (err error) {
		started, err = d.agent.StartProcess(ctx, rec.Pod(), process)
		place.PodUID = rec.PodUID
		return err
	})
	if err == nil {
		place.Since = started.Started
	}
	return started, place, notice, withNotice(err, notice)
}

// ExecState tells how a command is that was detached there: at its end, or after
// wait if that comes first.
func (d *Dispatcher) ExecState(ctx context.Context, req session.Request, at Where, id string, wait time.Duration) (*client.ExecState, error) {
	var state *client.ExecState
	err := d.task(ctx, req, at, func(ctx context.Context, pod client.Pod) (err error) {
		state, err = d.agent.ExecState(ctx, pod, id, wait)
		return err
	})
	return state, err
}

// CancelExec ends a command that was detached there.
func (d *Dispatcher) CancelExec(ctx context.Context, req session.Request, at Where, id string) error {
	return d.task(ctx, req, at, func(ctx context.Context, pod client.Pod) error { return d.agent.CancelExec(ctx, pod, id) })
}

// Process tells how a process is that was started there. Waiting, it does so for its
// end, and no longer than wait.
func (d *Dispatcher) Process(ctx context.Context, req session.Request, at Where, id string, wait time.Duration) (*client.Process, error) {
	var process *client.Process
	err := d.task(ctx, req, at, func(ctx context.Context, pod client.Pod) (err error) {
		if wait > 0 {
			// Beyond all output there is nothing to wait for but the end.
			if _, err = d.agent.ProcessOutput(ctx, pod, id, client.OutputQuery{Offset: beyondOutput, Limit: 1, Wait: wait}); err != nil {
				return err
			}
		}
		process, err = d.agent.Process(ctx, pod, id)
		return err
	})
	return process, err
}

// beyondOutput is more than any process writes, and fits the agent's query.
const beyondOutput = 1e17

// CancelProcess kills a process that was started there, with all that it started.
func (d *Dispatcher) CancelProcess(ctx context.Context, req session.Request, at Where, id string) error {
	return d.task(ctx, req, at, func(ctx context.Context, pod client.Pod) error { return d.agent.CancelProcess(ctx, pod, id) })
}

// task asks about a task in the pod that it is in. It makes no session, and an agent
// that began anew isn't told its own: the first call that does something is to learn
// what was lost. The error is ErrTaskLost if the pod is another one or its container
// began anew, client.ErrNotFound if the agent has never had it or no longer.
func (d *Dispatcher) task(ctx context.Context, req session.Request, at Where, ask func(context.Context, client.Pod) error) error {
	req.Mode = session.Known
	_, err := d.call(ctx, req, never, func(ctx context.Context, rec *session.Record) error {
		since, ok := at(rec.PodUID)
		if !ok {
			return d.taskLost(rec)
		}
		err := ask(ctx, rec.Pod())
		began := rec.Termination != nil && !rec.Termination.Time.Time.Before(since.Truncate(time.Second))
		if errors.Is(err, client.ErrSessionRequired) || errors.Is(err, client.ErrNotFound) && began {
			return d.taskLost(rec)
		}
		return err
	})
	return err
}

func (d *Dispatcher) taskLost(rec *session.Record) error {
	reason := d.loss(rec)
	if reason == "" {
		reason = "the sandbox's agent began anew: what it ran is gone"
	}
	return &AgentError{reason, ErrTaskLost}
}
