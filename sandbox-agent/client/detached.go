package client

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// ExecState is how a detached command is.
type ExecState = wire.ExecState

// Bounds of detached commands that callers need.
const (
	MaxDetachedResults = wire.MaxDetachedResults
	DetachedLifetime   = wire.DetachedLifetimeSeconds // seconds
	MaxExecWait        = wire.MaxExecWait             // seconds
)

// CodeBadRequest is that of a request that the agent doesn't understand.
const CodeBadRequest = wire.CodeBadRequest

// maxStateAnswer is more than a state takes.
const maxStateAnswer = wire.MaxResult + maxSmallAnswer

// ExecDetachable runs one command that outlives the call if it takes longer than
// request.DetachAfter seconds, which must be set, as its ID must be. It returns
// the command's result, or else how it is. Cancelling ctx before that cancels the
// command.
func (c *Client) ExecDetachable(ctx context.Context, pod Pod, request ExecRequest) (*ExecResult, *ExecState, error) {
	after := time.Duration(request.DetachAfter * float64(time.Second))
	if after <= 0 || !wire.ValidExecID(request.ID) {
		return nil, nil, notSent{errors.New("a detachable command needs an id and a time")}
	}
	ctx, cancel := context.WithTimeout(ctx, after+c.options.Grace)
	defer cancel()
	resp, err := c.do(ctx, pod, http.MethodPost, wire.ExecPath, nil, request)
	if err != nil {
		return nil, nil, err
	}
	if resp.StatusCode == http.StatusAccepted {
		var state ExecState
		if err := decode(resp, maxSmallAnswer, &state); err != nil {
			return nil, nil, err
		}
		return nil, &state, checkState(request.ID, &state)
	}
	var result ExecResult
	if err := c.decodeAdmitted(ctx, resp, wire.MaxResult, &result); err != nil {
		return nil, nil, err
	}
	if err := checkResult(&result); err != nil {
		return nil, nil, err
	}
	return &result, nil, nil
}

// ExecState returns how a detached command is: at its end, or after wait if that
// comes first (at most MaxExecWait seconds). It returns ErrNotFound when there is
// none, or its result is no longer kept.
func (c *Client) ExecState(ctx context.Context, pod Pod, id string, wait time.Duration) (*ExecState, error) {
	if !wire.ValidExecID(id) {
		return nil, &Error{Status: http.StatusNotFound, Code: wire.CodeNotFound, Message: "there is no such command"}
	}
	wait = min(max(wait, 0), MaxExecWait*time.Second)
	ctx, cancel := context.WithTimeout(ctx, wait+c.options.Grace)
	defer cancel()
	path := wire.ExecPath + "/" + id
	if wait > 0 {
		path += "?" + wire.ExecWait + "=" + strconv.FormatFloat(wait.Seconds(), 'f', 3, 64)
	}
	resp, err := c.do(ctx, pod, http.MethodGet, path, nil, nil)
	if err != nil {
		return nil, err
	}
	var state ExecState
	if err := c.decodeAdmitted(ctx, resp, maxStateAnswer, &state); err != nil {
		return nil, err
	}
	return &state, checkState(id, &state)
}

// checkState refuses what no command can be.
func checkState(id string, s *ExecState) error {
	switch {
	case s.ID != id:
		return badAnswer("another command")
	case s.Running && (s.Ended != nil || s.Result != nil || s.Error != nil || s.Cancelled):
		return badAnswer("a command that runs and has ended")
	case !s.Running && (s.Ended == nil || (s.Result == nil) == (s.Error == nil)):
		return badAnswer("a command that has ended without an end")
	case s.ExpiresIn < 0 || s.ExpiresIn > wire.DetachedLifetimeSeconds:
		return badAnswer("impossible expiry")
	}
	if s.Error != nil {
		s.Error.Code, s.Error.Message = clean(s.Error.Code, 64), clean(s.Error.Message, maxMessage)
	}
	if s.Result != nil {
		return checkResult(s.Result)
	}
	return nil
}
