package differential

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/test/localagent"
)

// Session runs s in a session of a, whose working directory is dir, one call
// for each part. gatePath is a FIFO.
func Session(ctx context.Context, s Script, a *localagent.Agent, dir, gatePath string) (Outcome, error) {
	var o Outcome
	for i, p := range s.Parts {
		for _, in := range p.Before {
			if err := interrupt(ctx, a, in, gatePath); err != nil {
				return o, fmt.Errorf("before part %d: %w", i, err)
			}
		}
		r, err := a.Run(ctx, client.ExecRequest{Command: p.Text(), Stdin: p.Stdin})
		if err != nil {
			return o, err
		}
		if r.Notice != "" || r.TimedOut {
			return o, fmt.Errorf("part %d: %+v", i, *r)
		}
		o.Parts = append(o.Parts, Result{Stdout: normal(r.Stdout), Stderr: normal(r.Stderr), Status: r.ExitCode})
	}
	var err error
	o.Files, err = files(dir)
	return o, err
}

// interrupt runs an interruption and checks that it was one.
func interrupt(ctx context.Context, a *localagent.Agent, in Interruption, gatePath string) error {
	r := client.ExecRequest{Command: strings.ReplaceAll(in.Command, gate, gatePath), Timeout: in.Timeout}
	cancelled := make(chan error, 1)
	if in.Cancel {
		r.ID = "cancelled"
		go func() {
			_, err := os.ReadFile(gatePath) // until the command has opened and closed it
			if err == nil {
				err = a.Client.CancelExec(ctx, a.Pod, r.ID)
			}
			cancelled <- err
		}()
	} else {
		cancelled <- nil
	}
	result, err := a.Run(ctx, r)
	if err != nil {
		return err
	}
	if result.ExitCode != in.Status || result.TimedOut != (in.Timeout > 0) {
		return fmt.Errorf("interruption %q: want status %d, got %+v", in.Command, in.Status, *result)
	}
	return <-cancelled
}
