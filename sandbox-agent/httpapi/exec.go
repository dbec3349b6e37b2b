package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/execlog"
	"github.com/berth-dev/berth/sandbox-agent/output"
	"github.com/berth-dev/berth/sandbox-agent/shell"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// budget is what both streams may cost in an answer that holds the result
// twice, which leaves room for all the rest of it.
const budget = wire.MaxResult - 64<<10

// exitKilled is the exit code of a command that was killed: 128 and SIGKILL.
const exitKilled = 137

func (s *Server) exec(w http.ResponseWriter, r *http.Request, _ string) *Refusal {
	if refusal := s.ready(); refusal != nil {
		return refusal
	}
	var req wire.ExecRequest
	held, refusal := readInto(w, r, s.bodies.commands, wire.MaxExecBody, &req)
	if refusal != nil {
		return refusal
	}
	defer func() { held.release() }()
	if !acceptsJSON(r) && !wantsFrames(r) {
		return refuse(http.StatusNotAcceptable, wire.CodeNotAcceptable, "this route answers "+contentJSON+" or "+wire.FramesType)
	}
	if refusal := checkCommand(req.Command, req.ID, req.Cwd, req.Env); refusal != nil {
		return refusal
	}
	if req.DetachAfter != 0 {
		body := held
		held = nil
		return s.detachable(w, r, req, body)
	}
	limits := s.session.current()
	var logs *execlog.Command
	if s.logs != nil && !req.NoLog {
		logs = s.logs.Command(limits.LogBytes)
	}
	defer logs.Finish()
	c := command(req, limits)
	c.Logs = logs
	var room *share
	defer func() { room.release() }()
	c.Turn = func(ctx context.Context) (err error) {
		room, err = s.unread.take(ctx, costOf(2*int64(c.OutputBytes)))
		return err
	}
	if !wantsFrames(r) {
		result, refusal := s.run(r.Context(), req.ID, c)
		if refusal != nil {
			return refusal
		}
		room.keep(costOf(kept(&result, c.OutputBytes)))
		writeJSON(w, http.StatusOK, encode(&result, logs))
		return nil
	}
	f := &frames{w: w}
	c.Follower = f
	result, refusal := s.run(r.Context(), req.ID, c)
	if refusal != nil {
		return f.refuse(refusal)
	}
	room.keep(costOf(kept(&result, c.OutputBytes)))
	result.Deliver()
	f.end(wire.FrameResult, encode(&result, logs))
	return nil
}

// kept is how many bytes of output a result has, of which it keeps so many of
// each stream.
func kept(r *shell.Result, ofEach int) int64 {
	return min(r.Stdout.Total, int64(ofEach)) + min(r.Stderr.Total, int64(ofEach))
}

// run runs a command to its end. Its answer is given afterwards, so that neither
// the next command nor the agent's own end waits for a slow reader.
func (s *Server) run(parent context.Context, id string, c shell.Command) (shell.Result, *Refusal) {
	ctx, done, refusal := s.commands.begin(parent, id)
	if refusal != nil {
		return shell.Result{}, refusal
	}
	defer done()
	result, err := s.shell.Run(ctx, c)
	switch {
	case err != nil && ctx.Err() != nil:
		// Whoever cancelled it knows, whoever waits for it must not repeat it.
		const notice = "The command was cancelled before it began: nothing ran."
		return shell.Result{ExitCode: exitKilled, Notice: notice}, nil
	case err != nil:
		return shell.Result{}, refusalOf(err)
	}
	if result.ExitCode == exitKilled && errors.Is(context.Cause(ctx), errCancelled) {
		result.Notice = join(result.Notice, "The command was cancelled.")
	}
	if result.ExitCode == exitKilled && errors.Is(context.Cause(ctx), errEnding) {
		result.Notice = join(result.Notice, "The command was stopped because the sandbox is shutting down.")
	}
	return result, nil
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

// checkCommand checks what commands and background processes have in common.
func checkCommand(command, id, cwd string, env []wire.EnvVar) *Refusal {
	switch {
	case command == "":
		return badRequest("command: must not be empty")
	case strings.ContainsRune(command, 0):
		return badRequest("command: holds a NUL, which no shell can read")
	case strings.ContainsRune(cwd, 0) || len(cwd) > wire.MaxPath:
		return badRequest("cwd: holds a NUL or is too long")
	case id != "" && !wire.ValidExecID(id):
		return badRequest("id: want 1 to 128 of A-Z a-z 0-9 . _ -")
	}
	return checkEnv(env)
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
		Timeout:     max(time.Duration(seconds*float64(time.Second)), time.Millisecond),
		OutputBytes: min(inline, limits.OutputBytes),
	}
}

// encode makes the answer of a result, whose logs are complete then.
func encode(r *shell.Result, logs *execlog.Command) wire.ExecResult {
	stdout, stderr := output.Encode(&r.Stdout, &r.Stderr, budget)
	log, notice := logs.Finish()
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
		Log:          log,
		Notice:       join(r.Notice, notice),
	}
}

func join(a, b string) string { return strings.TrimSpace(a + " " + b) }
