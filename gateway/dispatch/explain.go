package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/cancellation"
	"github.com/berth-dev/berth/gateway/room"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// Why a call under way was given up.
var (
	errEnded    = errors.New("the session was deleted while the call ran")
	errReplaced = errors.New("the session's pod was replaced while the call ran")
	// errElsewhere: it can't be repeated, because who knows of it is gone.
	errElsewhere = errors.New("the container that the call was sent to is gone")
)

// cancelled says why a call ended before its time.
func cancelled(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), cancellation.ErrShutdown) {
		return &AgentError{cancellation.ErrShutdown.Error(), err}
	}
	return &AgentError{"the call was cancelled", err}
}

// notFoundError keeps an agent's words for a file that is missing, and is
// artifact.ErrNotFound for an artifact that is.
type notFoundError struct{ refusal *client.Error }

func (e *notFoundError) Error() string { return e.refusal.Message }

func (e *notFoundError) Is(target error) bool { return target == artifact.ErrNotFound }

func (e *notFoundError) Unwrap() error { return e.refusal }

// AgentError is a call that an agent did not answer well. Its text is for the
// session's own caller: it names no address and no pod. The error below it is
// for the log.
type AgentError struct {
	Text string
	Err  error
}

func (e *AgentError) Error() string { return e.Text }

func (e *AgentError) Unwrap() error { return e.Err }

// explain makes an error for the caller, logs the original and notes what went
// wrong.
func (d *Dispatcher) explain(ctx context.Context, rec *session.Record, err error) error {
	var refusal *client.Error
	var explained *AgentError
	switch {
	case errors.As(err, &explained):
		return explained
	case errors.Is(err, room.ErrFull), errors.Is(err, artifact.ErrNotFound):
		return err
	case errors.Is(err, client.ErrNoRoute):
		return &AgentError{"the sandbox's agent is older than this gateway and can't do that; nothing was run: do it with a command, or delete the session to start it afresh", err}
	case errors.Is(err, client.ErrNotFound) && errors.As(err, &refusal):
		return &notFoundError{refusal}
	case beyondArtifact(err):
		return artifact.ErrRange
	case errors.Is(err, errEnded):
		return &AgentError{errEnded.Error(), err}
	case errors.Is(err, errReplaced):
		return &AgentError{errReplaced.Error() + d.cause(ctx, rec), err}
	case errors.Is(err, client.ErrBody):
		return &AgentError{"the upload's body ended early; nothing was kept", err}
	case ctx.Err() != nil, errors.Is(err, client.ErrCancelled):
		return cancelled(ctx, err)
	case errors.Is(err, client.ErrUnauthorized):
		d.log.Warn("Agent refused the gateway's token", "namespace", rec.Namespace, "session", rec.Name, "podUID", rec.PodUID, "keyID", rec.KeyID, "error", err)
		return &AgentError{"the sandbox's agent refused the gateway's token; nothing was run", err}
	case errors.As(err, &refusal):
		return &AgentError{refusal.Message + advice(refusal), err}
	case errors.Is(err, client.ErrNoKey):
		d.log.Error("Signing key of a session's pod is missing", "namespace", rec.Namespace, "session", rec.Name, "podUID", rec.PodUID, "error", err)
		return &AgentError{"the gateway no longer has the signing key that the session's pod was made with; nothing was run: delete the session to start it afresh", err}
	case errors.Is(err, client.ErrNotSent):
		d.log.Warn("Agent was not reached", "namespace", rec.Namespace, "session", rec.Name, "podUID", rec.PodUID, "error", err)
		return &AgentError{"the sandbox could not be reached; nothing was run" + d.cause(ctx, rec), err}
	case errors.Is(err, client.ErrBadAnswer) && !cutOff(err):
		d.observe(TroubleBadAnswer)
		d.log.Warn("Agent gave a bad answer", "namespace", rec.Namespace, "session", rec.Name, "podUID", rec.PodUID, "error", err)
		return &AgentError{"the sandbox's agent gave an answer that can't be used", err}
	case errors.Is(err, context.DeadlineExceeded):
		d.observe(TroubleTimeout)
		return &AgentError{"the sandbox's agent gave no answer in time; what was asked may have run", err}
	default:
		d.observe(TroubleLost)
		d.records.Suspect(rec)
		return d.lost(ctx, rec, err)
	}
}

// beyondArtifact tells whether a part of an artifact was asked for that begins
// beyond its end; of an empty one, no agent says so. Of a file, an agent says in its
// own words what it has.
func beyondArtifact(err error) bool {
	var refusal *client.Error
	return errors.Is(err, client.ErrRange) && (!errors.As(err, &refusal) || refusal.Code != client.CodeOutOfRange)
}

// advice ends the text of a refusal that doesn't last.
func advice(refusal *client.Error) string {
	switch {
	case errors.Is(refusal, client.ErrQueueFull) && refusal.RetryAfter > 0:
		return fmt.Sprintf("; nothing was run: try again in %s", refusal.RetryAfter)
	case errors.Is(refusal, client.ErrQueueFull):
		return "; nothing was run: try again"
	case errors.Is(refusal, client.ErrTooManyProcesses):
		return "; nothing was run: try again once one has ended"
	default:
		return ""
	}
}

// lost is a call of which nobody knows how far it got.
func (d *Dispatcher) lost(ctx context.Context, rec *session.Record, err error) error {
	d.log.Warn("Connection to agent was lost", "namespace", rec.Namespace, "session", rec.Name, "podUID", rec.PodUID, "error", err)
	return &AgentError{"the connection to the sandbox was lost; what was asked may have run" + d.cause(ctx, rec), err}
}

// cutOff tells whether an answer ended before its time: its agent is rather gone
// than lying.
func cutOff(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) }

// broke tells whether err is that of a connection, rather than an answer of the
// agent, the end of the time for one, or a decision of this package.
func broke(err error) bool {
	var refusal *client.Error
	if errors.As(err, &refusal) {
		return false
	}
	for _, other := range []error{
		client.ErrNotSent, client.ErrBadAnswer, client.ErrNotFound, context.DeadlineExceeded, context.Canceled,
		errEnded, errReplaced, errElsewhere, room.ErrFull, artifact.ErrNotFound,
	} {
		if errors.Is(err, other) {
			return false
		}
	}
	return true
}
