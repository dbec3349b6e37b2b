package client

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Bind tells the agent which Sandbox it serves. It is idempotent. It returns
// ErrSessionBound when the agent serves another one.
func (c *Client) Bind(ctx context.Context, pod Pod, session Session) error {
	return c.small(ctx, pod, http.MethodPut, wire.SessionPath, session, nil)
}

// Exec runs one command and returns its result, whatever its exit code. It
// waits at most for the command's time-out (MaxCommandTimeout for what the
// request leaves to the agent, which a longer ctx doesn't extend), its queue
// and a grace. Cancelling ctx cancels the command.
func (c *Client) Exec(ctx context.Context, pod Pod, request ExecRequest, commandTimeout time.Duration) (*ExecResult, error) {
	if commandTimeout <= 0 {
		commandTimeout = MaxCommandTimeout * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.QueueWait+commandTimeout+c.options.Grace)
	defer cancel()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	resp, err := c.do(ctx, pod, http.MethodPost, wire.ExecPath, nil, request)
	if err != nil {
		return nil, err
	}
	if err := c.admit(ctx, resp); err != nil {
		resp.Body.Close()
		return nil, err
	}
	// The room that was made is others' too: a pod may not hold it by dribbling.
	defer time.AfterFunc(c.options.Grace, func() { giveUp(context.DeadlineExceeded) }).Stop()
	var result ExecResult
	if err := decode(resp, wire.MaxResult, &result); err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	if err := checkResult(&result); err != nil {
		return nil, err
	}
	return &result, nil
}

// admit waits for the room that a result takes. One that is too long will not be
// read.
func (c *Client) admit(ctx context.Context, resp *http.Response) error {
	size := resp.ContentLength
	if size < 0 {
		size = wire.MaxResult
	}
	if c.options.Admit == nil || size < AdmitAbove || size > wire.MaxResult {
		return nil
	}
	return c.options.Admit(ctx, size)
}

// decodeAdmitted decodes a JSON answer of at most budget bytes, once there is room
// for it.
func (c *Client) decodeAdmitted(ctx context.Context, resp *http.Response, budget int64, v any) error {
	if err := c.admit(ctx, resp); err != nil {
		resp.Body.Close()
		return err
	}
	return decode(resp, budget, v)
}

// CancelExec cancels the command that was sent with this id, queued or
// running. It returns ErrNotFound when there is none.
func (c *Client) CancelExec(ctx context.Context, pod Pod, id string) error {
	if !wire.ValidExecID(id) {
		return notSent{errors.New("not an exec id")}
	}
	return c.small(ctx, pod, http.MethodDelete, wire.ExecPath+"/"+id, nil, nil)
}

// Export takes a file, or an archive, as an artifact that can be read for
// its ExpiresIn, in seconds. An archive or a digest may take ExportSeconds.
func (c *Client) Export(ctx context.Context, pod Pod, request ExportRequest) (*Artifact, error) {
	limit := c.options.Timeout
	if request.Archive || request.Digest {
		limit += wire.ExportSeconds * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	resp, err := c.do(ctx, pod, http.MethodPost, wire.ArtifactsPath, nil, request)
	if err != nil {
		return nil, err
	}
	var a Artifact
	if err := decode(resp, maxSmallAnswer, &a); err != nil {
		return nil, err
	}
	if err := checkArtifact(&a); err != nil {
		return nil, err
	}
	return &a, nil
}

// DropArtifact forgets an artifact. It returns ErrNotFound when there is none.
func (c *Client) DropArtifact(ctx context.Context, pod Pod, id string) error {
	if !wire.ValidArtifactID(id) {
		return ErrNotFound
	}
	return c.small(ctx, pod, http.MethodDelete, wire.ArtifactsPath+"/"+id, nil, nil)
}

// Health asks how the agent is. An agent that says it is not well (503) is an
// answer, not an error.
func (c *Client) Health(ctx context.Context, pod Pod) (*Health, error) {
	host, err := c.host(pod)
	if err != nil {
		return nil, notSent{err}
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+wire.HealthPath, nil)
	if err != nil {
		return nil, notSent{err}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, unwrapURL(err)
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusServiceUnavailable {
		defer resp.Body.Close()
		return nil, refusal(resp)
	}
	var h Health
	if err := decode(resp, maxSmallAnswer, &h); err != nil {
		return nil, err
	}
	return &h, checkHealth(&h)
}

// small sends a request whose answer is short and soon.
func (c *Client) small(ctx context.Context, pod Pod, method, path string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	resp, err := c.do(ctx, pod, method, path, nil, body)
	if err != nil {
		return err
	}
	if answer != nil {
		return decode(resp, maxSmallAnswer, answer)
	}
	defer resp.Body.Close()
	_, err = readAll(resp, maxSmallAnswer) // to the end, so that the connection is kept
	return err
}
