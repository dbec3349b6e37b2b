package mcpserver

import (
	"context"
	"time"

	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/gateway/tasks"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// execTask is the task that a command became. Its result is what the call's would
// have been.
func (s podTasks) execTask(ctx context.Context, id tasks.ID, target session.Request, wait time.Duration) (*tasks.Task, error) {
	state, err := s.Calls.ExecState(ctx, target, inPod(id), id.Name, wait)
	if err != nil {
		return nil, err
	}
	task := begun(id, state.Sent)
	if state.Running {
		return task, nil
	}
	task.PollInterval = 0
	task.Keep(*state.Ended, client.DetachedLifetime*time.Second)
	switch {
	case state.Error != nil:
		task.Fail("the command was not run: " + state.Error.Message)
	case state.Cancelled:
		task.Status, task.Message = tasks.Cancelled, "the command was cancelled"
	default:
		task.Status = tasks.Completed
		task.Result, err = bashResult(id.Key, state.Result)
	}
	return task, err
}

// begun is a task that works.
func begun(id tasks.ID, at time.Time) *tasks.Task {
	return &tasks.Task{
		ID: id.String(), Status: tasks.Working,
		Created: tasks.Time{Time: at}, Updated: tasks.Time{Time: at},
		PollInterval: tasks.PollInterval.Milliseconds(),
	}
}

// processTask is the task that a background process is. Its result has what it wrote
// last, stdout and stderr together, and its exit code.
func (s podTasks) processTask(ctx context.Context, id tasks.ID, target session.Request, wait time.Duration) (*tasks.Task, error) {
	p, err := s.Calls.Process(ctx, target, inPod(id), id.Name, wait)
	if err != nil {
		return nil, err
	}
	task := begun(id, p.Started)
	if p.Running {
		task.Message = reachable(p.ID)
		return task, nil
	}
	task.PollInterval = 0
	if p.Ended != nil {
		task.Updated = tasks.Time{Time: *p.Ended}
	}
	if p.Cancelled {
		task.Status, task.Message = tasks.Cancelled, "the process was cancelled"
		return task, nil
	}
	if p.ExitCode == nil {
		task.Fail("how the process ended is not known: " + p.Notice)
		return task, nil
	}
	output, _, err := s.Calls.Output(ctx, target, p.ID, client.OutputQuery{Offset: -client.DefaultOutputBytes, Limit: client.DefaultOutputBytes})
	if err != nil {
		return nil, err
	}
	out := bashOut{
		Stdout: output.Output, ExitCode: *p.ExitCode, ProcessID: p.ID, Notice: p.Notice,
		DurationMS: task.Updated.Sub(p.Started).Milliseconds(), Truncated: output.Offset > 0, OmittedBytes: output.Offset,
	}
	task.Status = tasks.Completed
	task.Result, err = answer(out)
	if err == nil {
		task.Result.IsError = out.ExitCode != 0
	}
	return task, err
}
