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
	switch {
	case req.DetachAfter != 0:
		body := held
		held = nil
		return s.detachable(w, r, req, body)
	case wantsFrames(r):
		return s.execFrames(w, r, req)
	default:
		o := s.outcome(r.Context(), req)
		return o.answer(w)
	}
}

// prepared is a command that is ready to run, and what its result takes.
type prepared struct {
	shell.Command
	room *share // from its turn on
}

func (s *Server) prepare(req wire.ExecRequest) *prepared {
	limits := s.session.current()
	c := &prepared{Command: command(req, limits)}
	if s.logs != nil && !req.NoLog {
		c.Logs = s.logs.Command(limits.LogBytes)
	}
	c.Turn = func(ctx context.Context) (err error) {
		c.room, err = s.unread.take(ctx, costOf(2*int64(c.OutputBytes)))
		return err
	}
	return c
}

// execFrames runs a command whose output is sent as it comes.
func (s *Server) execFrames(w http.ResponseWriter, r *http.Request, req wire.ExecRequest) *Refusal {
	c := s.prepare(req)
	defer c.Logs.Finish()
	defer func() { c.room.release() }()
	f := &frames{w: w}
	c.Follower = f
	result, refusal := s.run(r.Context(), req.ID, c.Command)
	if refusal != nil {
		return f.refuse(refusal)
	}
	c.room.keep(costOf(kept(&result, c.OutputBytes)))
	result.Deliver()
	f.end(wire.FrameResult, encode(&result, c.Logs))
	return nil
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
		return shell.Result{ExitCode: wire.ExitKilled, Notice: notice}, nil
	case err != nil:
		return shell.Result{}, refusalOf(err)
	}
	if result.ExitCode == wire.ExitKilled && errors.Is(context.Cause(ctx), errCancelled) {
		result.Notice = join(result.Notice, "The command was cancelled.")
	}
	if result.ExitCode == wire.ExitKilled && errors.Is(context.Cause(ctx), errEnding) {
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
