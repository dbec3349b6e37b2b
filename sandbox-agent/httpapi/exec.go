package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/output"
	"github.com/berth-dev/berth/sandbox-agent/shell"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// budget is what both streams may cost in an answer that holds the result
// twice, which leaves room for all the rest of it.
const budget = wire.MaxResult - 64<<10

// retryAfter is what a caller is told whose command found the queue full.
const retryAfter = 1 // second

// exitKilled is the exit code of a command that was killed: 128 and SIGKILL.
const exitKilled = 137

func (s *Server) exec(w http.ResponseWriter, r *http.Request, _ string) *Refusal {
	if refusal := s.ready(); refusal != nil {
		return refusal
	}
	var req wire.ExecRequest
	if refusal := readJSON(w, r, wire.MaxExecBody, &req); refusal != nil {
		return refusal
	}
	if refusal := checkExec(r, req); refusal != nil {
		return refusal
	}
	ctx, done, refusal := s.commands.begin(r.Context(), req.ID)
	if refusal != nil {
		return refusal
	}
	defer done()
	result, err := s.shell.Run(ctx, command(req, s.session.current()))
	if err != nil {
		return runRefusal(ctx, w, err)
	}
	if result.ExitCode == exitKilled && errors.Is(context.Cause(ctx), errEnding) {
		result.Notice = strings.TrimSpace(result.Notice + " The command was stopped because the sandbox is shutting down.")
	}
	writeJSON(w, http.StatusOK, encode(result))
	return nil
}

func (s *Server) ready() *Refusal {
	switch {
	case s.shell.Kind() == wire.ShellNone:
		return refuse(http.StatusServiceUnavailable, wire.CodeNoShell, "the image has neither bash nor sh: nothing can run in it")
	case s.commands.isClosed():
		return draining()
	}
	return nil
}

func draining() *Refusal {
	return refuse(http.StatusServiceUnavailable, wire.CodeDraining, "the agent is shutting down")
}

func checkExec(r *http.Request, req wire.ExecRequest) *Refusal {
	switch {
	case !acceptsJSON(r):
		return refuse(http.StatusNotAcceptable, wire.CodeNotAcceptable, "this route answers "+contentJSON)
	case req.Command == "":
		return badRequest("command: must not be empty")
	case strings.ContainsRune(req.Command, 0):
		return badRequest("command: holds a NUL, which no shell can read")
	case strings.ContainsRune(req.Cwd, 0) || len(req.Cwd) > wire.MaxPath:
		return badRequest("cwd: holds a NUL or is too long")
	case req.ID != "" && !wire.ValidExecID(req.ID):
		return badRequest("id: want 1 to 128 of A-Z a-z 0-9 . _ -")
	}
	return checkEnv(req.Env)
}

func acceptsJSON(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return accept == "" || strings.Contains(accept, contentJSON) || strings.Contains(accept, "*/*") || strings.Contains(accept, "application/*")
}

func command(req wire.ExecRequest, limits wire.Limits) shell.Command {
	seconds := req.Timeout
	if !(seconds > 0) {
		seconds = float64(limits.CommandTimeoutDefault)
	}
	seconds = min(seconds, float64(limits.CommandTimeoutMax))
	inline := req.MaxOutputBytes
	if inline <= 0 {
		inline = wire.DefaultOutputBytes
	}
	return shell.Command{
		Text:        req.Command,
		Cwd:         req.Cwd,
		Env:         environ(req.Env),
		Stdin:       req.Stdin,
		Timeout:     time.Duration(seconds * float64(time.Second)),
		OutputBytes: min(inline, limits.OutputBytes),
	}
}

func encode(r shell.Result) wire.ExecResult {
	stdout, stderr := output.Encode(r.Stdout, r.Stderr, budget)
	omitted := stdout.Omitted + stderr.Omitted
	return wire.ExecResult{
		Stdout:       stdout.String,
		Stderr:       stderr.String,
		ExitCode:     r.ExitCode,
		DurationMS:   r.Duration.Milliseconds(),
		TimedOut:     r.TimedOut,
		Truncated:    omitted > 0,
		OmittedBytes: omitted,
		StdoutBytes:  r.Stdout.Total,
		StderrBytes:  r.Stderr.Total,
		Notice:       r.Notice,
	}
}

// runRefusal answers for a command that never began. A cancelled one is a
// result: whoever cancelled it knows, whoever waits for it must not repeat it.
func runRefusal(ctx context.Context, w http.ResponseWriter, err error) *Refusal {
	switch {
	case ctx.Err() != nil:
		writeJSON(w, http.StatusOK, wire.ExecResult{ExitCode: exitKilled, Notice: "The command was cancelled before it began: nothing ran."})
		return nil
	case errors.Is(err, shell.ErrQueueFull):
		return &Refusal{Status: http.StatusTooManyRequests, Code: wire.CodeQueueFull, Message: "too many commands wait: try again later", RetryAfter: retryAfter}
	case errors.Is(err, shell.ErrNoShell):
		return refuse(http.StatusServiceUnavailable, wire.CodeNoShell, err.Error())
	case errors.Is(err, shell.ErrClosed):
		return refuse(http.StatusServiceUnavailable, wire.CodeDraining, err.Error())
	}
	return refuse(http.StatusInternalServerError, wire.CodeInternal, err.Error())
}
