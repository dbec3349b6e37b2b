// Package dispatch carries one call to the agent of one session's pod.
//
// It decides when a call may be repeated, and the rule is short: a command that
// may have started is never sent again. So any call is repeated if not one byte
// of it left, or once for each answer that an agent gives before it runs
// anything: 401 (another pod has this address), 409 (a fresh agent that must be
// told its session) and 410 or 503 draining (this pod takes no more).
//
// When the connection breaks, so that nobody knows whether the call arrived:
//
//	Exec, Export, Input, Signal,
//	WriteFile, EditFile           never: they may have had their effect
//	Upload                        never, nor once its body was read from: it can't
//	                              be read again
//	Processes, Output, ReadLines,
//	ReadBytes, ListFiles, Cancel  once: they have none
//	Start                         once, in the same container alone: its agent
//	                              knows the process by an id that the call carries
//	Read                          never: its caller can
package dispatch

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/gateway/tracing"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// Agent is what dispatch needs of the agents' client.
type Agent interface {
	Bind(ctx context.Context, pod client.Pod, s client.Session) error
	Exec(ctx context.Context, pod client.Pod, request client.ExecRequest, commandTimeout time.Duration) (*client.ExecResult, error)
	// ExecStream is Exec that gives sink what the command writes, as it does. Data
	// is valid until sink returns.
	ExecStream(ctx context.Context, pod client.Pod, request client.ExecRequest, commandTimeout time.Duration, sink func(kind byte, data []byte) error) (*client.ExecResult, error)
	Export(ctx context.Context, pod client.Pod, request client.ExportRequest) (*client.Artifact, error)
	ReadArtifact(ctx context.Context, pod client.Pod, id string, span client.Span, budget int64) (*client.Reading, error)
	DropArtifact(ctx context.Context, pod client.Pod, id string) error
	Upload(ctx context.Context, pod client.Pod, name string, size int64, body io.Reader) (*client.File, error)
	// CancelCall ends the call of that key, of any replica, if there is one alone.
	CancelCall(ctx context.Context, pod client.Pod, key string) error
	// Calls gives the ids of the calls of that key that are under way.
	Calls(ctx context.Context, pod client.Pod, key string) ([]string, error)
	Processes
	Tasks
	Files
}

// Processes is what dispatch needs of it for background processes.
type Processes interface {
	StartProcess(ctx context.Context, pod client.Pod, request client.ProcessRequest) (*client.Process, error)
	Processes(ctx context.Context, pod client.Pod) (*client.ProcessList, error)
	ProcessOutput(ctx context.Context, pod client.Pod, id string, q client.OutputQuery) (*client.ProcessOutput, error)
	ProcessInput(ctx context.Context, pod client.Pod, id string, input client.ProcessInput) (*client.ProcessInputResult, error)
	SignalProcess(ctx context.Context, pod client.Pod, id, signal string) error
}

// Sessions finds sessions.
type Sessions interface {
	Resolve(ctx context.Context, req session.Request) (*session.Record, error)
}

// Records is the store behind Sessions.
type Records interface {
	Get(key session.Key) (*session.Record, bool)
	Watch(key session.Key, changed func()) (stop func())
	Suspect(r *session.Record)
}

// Dispatcher carries calls.
type Dispatcher struct {
	agent    Agent
	sessions Sessions
	records  Records
	stores   Stores
	log      *slog.Logger
	observe  func(kind string)
}

// New returns a dispatcher that keeps exports in stores where a session says so.
// observe is told the kind of each trouble with an agent, one of the Trouble constants.
func New(agent Agent, sessions Sessions, records Records, stores Stores, log *slog.Logger, observe func(kind string)) *Dispatcher {
	return &Dispatcher{agent: agent, sessions: sessions, records: records, stores: stores, log: log, observe: observe}
}

// Kinds of trouble with an agent.
const (
	TroubleNotSent      = "not_sent"
	TroubleLost         = "lost"
	TroubleUnauthorized = "unauthorized"
	TroubleGone         = "gone"
	TroubleBadAnswer    = "bad_answer"
	TroubleTimeout      = "timeout"
)

// replacedGrace is what a pod that was replaced gets to answer: it may be
// finishing what it runs, or be about to say that it runs nothing.
const replacedGrace = 5 * time.Second

// while runs send and cancels it when the session ends or its pod is gone, so
// that nobody waits out a time-out for a command that is dead.
func (d *Dispatcher) while(ctx context.Context, rec *session.Record, send func(context.Context, *session.Record) error) error {
	ctx, stop := d.follow(ctx, rec)
	defer stop()
	asking, end := tracing.Child(ctx, "ask agent", trace.SpanKindClient, attribute.String("k8s.pod.uid", rec.PodUID))
	err := because(ctx, send(asking, rec))
	end(err)
	return err
}

// resolve is a span of its own: a session that isn't ready is what a call waits for
// longest.
func (d *Dispatcher) resolve(ctx context.Context, req session.Request) (*session.Record, error) {
	ctx, end := tracing.Child(ctx, "resolve session", trace.SpanKindInternal)
	rec, err := d.sessions.Resolve(ctx, req)
	end(err)
	return rec, err
}

// follow returns a context that ends, until stop is called, when the session does
// or its pod is gone.
func (d *Dispatcher) follow(ctx context.Context, rec *session.Record) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var replaced sync.Once
	detach := d.records.Watch(rec.Key, func() {
		now, ok := d.records.Get(rec.Key)
		switch {
		case !ok || now.UID != rec.UID || now.Deleting:
			cancel(errEnded)
		case now.PodUID != rec.PodUID:
			replaced.Do(func() {
				timer := time.AfterFunc(replacedGrace, func() { cancel(errReplaced) })
				context.AfterFunc(ctx, func() { timer.Stop() })
			})
		}
	})
	return ctx, func() {
		detach()
		cancel(nil)
	}
}

// because adds to an error why follow ended the context, if it did.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && (errors.Is(cause, errEnded) || errors.Is(cause, errReplaced)) {
		return errors.Join(cause, err)
	}
	return err
}

// changes waits until the session's record is another one than rec.
func (d *Dispatcher) changes(ctx context.Context, rec *session.Record, timeout time.Duration) bool {
	return d.await(ctx, rec.Key, timeout, func(now *session.Record, ok bool) bool {
		return !ok || now.UID != rec.UID || now.PodUID != rec.PodUID || now.Ready != rec.Ready || now.Termination != rec.Termination
	})
}

// await waits until a session's record is as done wants it; ok tells done whether
// there is one.
func (d *Dispatcher) await(ctx context.Context, key session.Key, timeout time.Duration, done func(now *session.Record, ok bool) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	changed := make(chan struct{}, 1)
	defer d.records.Watch(key, func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	for !done(d.records.Get(key)) {
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
