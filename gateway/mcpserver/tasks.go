package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/authz"
	"github.com/berth-dev/berth/gateway/dispatch"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/gateway/tasks"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// Tasks reaches what outlives its call, in the sessions' agents.
type Tasks interface {
	ExecDetachable(ctx context.Context, req session.Request, command dispatch.Command, after time.Duration) (*client.ExecResult, *dispatch.Detached, error)
	StartTask(ctx context.Context, req session.Request, process client.ProcessRequest) (p *client.Process, place dispatch.Place, notice string, err error)
	ExecState(ctx context.Context, req session.Request, at dispatch.Where, id string, wait time.Duration) (*client.ExecState, error)
	CancelExec(ctx context.Context, req session.Request, at dispatch.Where, id string) error
	Process(ctx context.Context, req session.Request, at dispatch.Where, id string, wait time.Duration) (*client.Process, error)
	CancelProcess(ctx context.Context, req session.Request, at dispatch.Where, id string) error
}

// runOrTake runs a command whose call becomes a task if it takes its time. Tasks
// have no progress, so there is none before either.
func (s *Server) runOrTake(ctx context.Context, offer *tasks.Offer, target session.Request, command dispatch.Command) (*client.ExecResult, *mcp.CallToolResult, error) {
	result, detached, err := s.Calls.ExecDetachable(ctx, target, command, s.TaskAfter)
	if err != nil || detached == nil {
		return result, nil, err
	}
	task := working(target.Key, detached.ID, detached.Place)
	task.Message = detached.Notice
	return nil, offer.Take(task), nil
}

// take starts a process whose call is answered with a task.
func (s *Server) take(ctx context.Context, offer *tasks.Offer, target session.Request, process client.ProcessRequest) (*mcp.CallToolResult, error) {
	started, place, notice, err := s.Calls.StartTask(ctx, target, process)
	if err != nil {
		return nil, err
	}
	task := working(target.Key, started.ID, place)
	task.Message = dispatch.JoinNotices(dispatch.JoinNotices(notice, started.Notice), reachable(started.ID))
	return offer.Take(task), nil
}

func reachable(id string) string {
	return fmt.Sprintf("runs in the background as %s: process_output, process_input and process_signal reach it by this id", id)
}

func working(key session.Key, name string, place dispatch.Place) tasks.Task {
	id := tasks.ID{Key: key, Name: name, Pod: tasks.Mark(place.PodUID), Created: max(1, place.Since.Unix())}
	return tasks.Task{
		ID: id.String(), Status: tasks.Working,
		Created: tasks.Time{Time: place.Since}, Updated: tasks.Time{Time: place.Since},
		PollInterval: tasks.PollInterval.Milliseconds(),
	}
}

// podTasks are the tasks of sessions: they live in the pods.
type podTasks struct{ *Server }

// Get implements tasks.Source.
func (s podTasks) Get(ctx context.Context, header http.Header, handle string, wait time.Duration) (*tasks.Task, error) {
	var task *tasks.Task
	err := s.onTask(ctx, header, handle, func(ctx context.Context, id tasks.ID, target session.Request) (err error) {
		if id.IsProcess() {
			task, err = s.processTask(ctx, id, target, wait)
		} else {
			task, err = s.execTask(ctx, id, target, wait)
		}
		if errors.Is(err, dispatch.ErrTaskLost) {
			task, err = lost(id, err), nil
		}
		return err
	})
	return task, err
}

// lost is a task of which nobody knows how it ended.
func lost(id tasks.ID, why error) *tasks.Task {
	task := &tasks.Task{ID: id.String(), Created: tasks.Time{Time: id.Began()}, Updated: tasks.Time{Time: id.Began()}}
	task.Fail(why.Error())
	return task
}

// Cancel implements tasks.Source.
func (s podTasks) Cancel(ctx context.Context, header http.Header, handle string) error {
	return s.onTask(ctx, header, handle, func(ctx context.Context, id tasks.ID, target session.Request) error {
		cancel := s.Calls.CancelExec
		if id.IsProcess() {
			cancel = s.Calls.CancelProcess
		}
		err := cancel(ctx, target, inPod(id), id.Name)
		if errors.Is(err, dispatch.ErrTaskLost) {
			return nil // it has ended
		}
		return err
	})
}

// Update implements tasks.Source: a command asks for nothing, so whatever is
// answered was not asked for.
func (s podTasks) Update(ctx context.Context, header http.Header, handle string, _ map[string]json.RawMessage) error {
	_, err := s.Get(ctx, header, handle, 0)
	return err
}

// inPod is where a task is.
func inPod(id tasks.ID) dispatch.Where {
	return func(podUID string) (time.Time, bool) { return id.Began(), tasks.Mark(podUID) == id.Pod }
}

// onTask asks about a task for the caller of ctx, if it may use the task's session.
// Whether it may not or there is none looks the same.
func (s podTasks) onTask(ctx context.Context, header http.Header, handle string, ask func(context.Context, tasks.ID, session.Request) error) error {
	call := audit.FromContext(ctx)
	id, err := tasks.ParseID(handle)
	caller, ok := authn.FromContext(ctx)
	if err != nil || !ok || !ofSession(header, id) {
		call.Code = audit.CodeNotFound
		return tasks.ErrNotFound
	}
	call.Namespace, call.Session = id.Namespace, id.Key.Name
	target := session.Request{Key: id.Key, Caller: caller, Mode: session.Known}
	if err = s.authorize(ctx, target, authz.Create); err == nil {
		err = ask(ctx, id, target)
	}
	call.Code = audit.CodeOK
	if err != nil {
		call.Code = codeOf(ctx, err)
	}
	for _, unknown := range []error{session.ErrForbidden, session.ErrNotAvailable, session.ErrNotFound, client.ErrNotFound} {
		if errors.Is(err, unknown) {
			return tasks.ErrNotFound
		}
	}
	return err
}

// ofSession tells whether what a request's headers say of the session, if anything, is
// the task's.
func ofSession(header http.Header, id tasks.ID) bool {
	is := func(name, value string) bool {
		values := header.Values(name)
		return len(values) == 0 || len(values) == 1 && values[0] == value
	}
	return is(session.Header, id.Key.Name) && is(session.NamespaceHeader, id.Namespace)
}
