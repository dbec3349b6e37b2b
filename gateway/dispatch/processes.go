package dispatch

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// processID names a process for as long as its session lives. The gateway makes
// it, so that an agent that is asked twice starts it once.
func processID() string {
	id := make([]byte, 8)
	rand.Read(id) // never fails (crypto/rand)
	return "p-" + hex.EncodeToString(id)
}

// Start starts a background process. Its ID is in the answer; the request has
// none. The notice says what the session lost before this call, here and below.
func (d *Dispatcher) Start(ctx context.Context, req session.Request, process client.ProcessRequest) (_ *client.Process, notice string, err error) {
	process.ID = processID()
	var started *client.Process
	notice, err = d.call(ctx, req, inPlace, func(ctx context.Context, rec *session.Record) (err error) {
		started, err = d.agent.StartProcess(ctx, rec.Pod(), process)
		return err
	})
	return started, notice, withNotice(err, notice)
}

// Processes lists the session's background processes.
func (d *Dispatcher) Processes(ctx context.Context, req session.Request) (_ []client.Process, notice string, err error) {
	var list client.ProcessList
	notice, err = d.call(ctx, req, harmless, func(ctx context.Context, rec *session.Record) error {
		l, err := d.agent.Processes(ctx, rec.Pod())
		if err == nil {
			list = *l
		}
		return err
	})
	return list.Processes, notice, withNotice(err, notice)
}

// Output returns a part of a process's output, waiting for it as q says.
func (d *Dispatcher) Output(ctx context.Context, req session.Request, id string, q client.OutputQuery) (_ *client.ProcessOutput, notice string, err error) {
	var output *client.ProcessOutput
	notice, err = d.call(ctx, req, harmless, func(ctx context.Context, rec *session.Record) (err error) {
		output, err = d.agent.ProcessOutput(ctx, rec.Pod(), id, q)
		return err
	})
	return output, notice, withNotice(err, notice)
}

// Input gives a process something to read, and returns how many bytes it took.
func (d *Dispatcher) Input(ctx context.Context, req session.Request, id string, input client.ProcessInput) (written int, notice string, err error) {
	notice, err = d.call(ctx, req, never, func(ctx context.Context, rec *session.Record) error {
		taken, err := d.agent.ProcessInput(ctx, rec.Pod(), id, input)
		if err == nil {
			written = taken.Written
		}
		return err
	})
	return written, notice, withNotice(err, notice)
}

// Signal sends a process a signal.
func (d *Dispatcher) Signal(ctx context.Context, req session.Request, id, signal string) (notice string, err error) {
	notice, err = d.call(ctx, req, never, func(ctx context.Context, rec *session.Record) error {
		return d.agent.SignalProcess(ctx, rec.Pod(), id, signal)
	})
	return notice, withNotice(err, notice)
}
