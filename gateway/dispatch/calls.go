package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// Default and largest time of a command, in seconds, where the template is silent.
const (
	defaultTimeout = client.DefaultCommandTimeout
	maxTimeout     = client.MaxCommandTimeout
)

// Timeout is how long a command may run that asks for so many seconds: the
// session's default for none, its maximum for more.
func Timeout(seconds int, limits client.Limits) time.Duration {
	ceiling := limits.CommandTimeoutMax
	if ceiling <= 0 {
		ceiling = max(maxTimeout, limits.CommandTimeoutDefault)
	}
	if seconds <= 0 {
		seconds = limits.CommandTimeoutDefault
		if seconds <= 0 {
			seconds = defaultTimeout
		}
	}
	return time.Duration(min(seconds, ceiling)) * time.Second
}

// Command is what a session's shell is asked to run.
type Command struct {
	Source string
	// Timeout, in seconds, and MaxOutputBytes are what the caller asked for: 0 and
	// less is nothing.
	Timeout        int
	MaxOutputBytes int
	// Output, if set, is given what the command writes, as it does: its kind is
	// client.FrameStdout or client.FrameStderr, and data is valid until it returns.
	// While it doesn't, the command waits.
	Output func(kind byte, data []byte)
}

// Exec runs a command in the session's shell. The result is the same with and
// without Output.
func (d *Dispatcher) Exec(ctx context.Context, req session.Request, command Command) (*client.ExecResult, error) {
	var result *client.ExecResult
	notice, err := d.call(ctx, req, never, func(ctx context.Context, rec *session.Record) (err error) {
		timeout := Timeout(command.Timeout, rec.Limits)
		request := client.ExecRequest{
			Command:        command.Source,
			Timeout:        timeout.Seconds(),
			MaxOutputBytes: max(command.MaxOutputBytes, 0),
		}
		if command.Output == nil {
			result, err = d.agent.Exec(ctx, rec.Pod(), request, timeout)
			return err
		}
		result, err = d.stream(ctx, rec.Pod(), request, timeout, command.Output)
		return err
	})
	if err != nil {
		return nil, withNotice(err, notice)
	}
	result.Notice = JoinNotices(notice, result.Notice)
	return result, nil
}

// stream runs a command that has written something once output was called: then
// no word of its agent makes it one that didn't run.
func (d *Dispatcher) stream(ctx context.Context, pod client.Pod, request client.ExecRequest, timeout time.Duration, output func(byte, []byte)) (*client.ExecResult, error) {
	ran := false
	result, err := d.agent.ExecStream(ctx, pod, request, timeout, func(kind byte, data []byte) error {
		ran = true
		output(kind, data)
		return nil
	})
	var refusal *client.Error
	if ran && errors.As(err, &refusal) {
		return nil, fmt.Errorf("%w: a refusal of what had run: %s", client.ErrBadAnswer, refusal.Code)
	}
	return result, err
}

// withNotice adds what was lost to an error: a missing file is clearer then.
func withNotice(err error, notice string) error {
	if err == nil || notice == "" {
		return err
	}
	return &AgentError{err.Error() + "; " + notice, err}
}

// JoinNotices keeps the gateway's notice, about the pod, before the agent's,
// about the shell.
func JoinNotices(pod, shell string) string {
	if pod == "" || shell == "" {
		return pod + shell
	}
	return pod + "; " + shell
}
