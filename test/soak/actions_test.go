package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// action is one thing that callers do. Callers don't know of each other.
type action struct {
	name string
	do   func(ctx context.Context, s *soaked, i int) error
}

var actions = []action{
	command("a mere call", client.ExecRequest{Command: "true"}, 0, ""),
	command("a builtin", client.ExecRequest{Command: "n=$((n+1)); echo x"}, 0, "x\n"),
	command("a pipeline", client.ExecRequest{Command: "seq 1000 | tail -n 1"}, 0, "1000\n"),
	command("exit", client.ExecRequest{Command: "exit 3"}, 3, ""),
	command("exec", client.ExecRequest{Command: "exec false"}, 1, ""),
	command("kill of the shell", client.ExecRequest{Command: "kill -9 $BASHPID"}, 137, ""),
	command("syntax error", client.ExecRequest{Command: "echo 'abc"}, 2, ""),
	command("time-out", client.ExecRequest{Command: "sleep 77", Timeout: 0.02}, 137, ""),
	command("time-out of a tree", client.ExecRequest{Command: "for i in 1 2 3 4 5; do setsid sleep 77 & done; sleep 77", Timeout: 0.1}, 137, ""),
	command("time-out of a loop", client.ExecRequest{Command: "while :; do :; done", Timeout: 0.02}, 137, ""),
	command("a large input", client.ExecRequest{Command: "wc -c", Stdin: strings.Repeat("x", 500_000)}, 0, "500000\n"),
	command("an input that is not read", client.ExecRequest{Command: "echo x", Stdin: strings.Repeat("x", 500_000)}, 0, "x\n"),
	{"a job", job},
	{"output", output},
	{"streamed output", stream},
	{"cancel", cancel},
	{"artifact", artifact},
	{"process", process},
	{"terminal", terminal},
}

func command(name string, r client.ExecRequest, code int, stdout string) action {
	return action{name, func(ctx context.Context, s *soaked, _ int) error {
		result, err := s.Run(ctx, r)
		if err == nil && (result.ExitCode != code || result.Stdout != stdout || result.TimedOut != (r.Timeout > 0)) {
			err = fmt.Errorf("got %+v", *result)
		}
		return err
	}}
}

// job leaves one behind. On a machine under load it may write before its call
// has ended.
func job(ctx context.Context, s *soaked, _ int) error {
	result, err := s.Run(ctx, client.ExecRequest{Command: "(sleep 0.02; echo late; echo late >&2) & echo now"})
	if err == nil && (strings.Replace(result.Stdout, "late\n", "", 1) != "now\n" || result.ExitCode != 0) {
		err = fmt.Errorf("got %+v", *result)
	}
	return err
}

func output(ctx context.Context, s *soaked, _ int) error {
	result, err := s.Run(ctx, client.ExecRequest{Command: "seq 200000; seq 200000 >&2"})
	if err == nil && (result.StdoutBytes != 1288895 || result.StderrBytes != 1288895 || !result.Truncated || result.Log == nil) {
		err = fmt.Errorf("got %d and %d bytes, log %+v", result.StdoutBytes, result.StderrBytes, result.Log)
	}
	return err
}

func stream(ctx context.Context, s *soaked, i int) error {
	var got int
	_, err := s.Client.ExecStream(ctx, s.Pod, client.ExecRequest{Command: "seq 200000", NoLog: i%2 == 0}, 0, func(_ byte, data []byte) error {
		got += len(data)
		return nil
	})
	if err == nil && got != 1288895 {
		err = fmt.Errorf("got %d bytes", got)
	}
	return err
}

// cancel is a caller who goes away.
func cancel(ctx context.Context, s *soaked, _ int) error {
	ctx, giveUp := context.WithTimeout(ctx, 20*time.Millisecond)
	defer giveUp()
	_, err := s.Client.Exec(ctx, s.Pod, client.ExecRequest{Command: "sleep 77"}, 0)
	if !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("got %w", err)
	}
	return nil
}

func artifact(ctx context.Context, s *soaked, i int) error {
	name := fmt.Sprintf("artifact-%d", i%8)
	if _, err := s.Run(ctx, client.ExecRequest{Command: "head -c 100000 /dev/zero > $HOME/" + name}); err != nil {
		return err
	}
	a, err := s.Client.Export(ctx, s.Pod, client.ExportRequest{Path: name})
	if err != nil {
		return err
	}
	r, err := s.Client.ReadArtifact(ctx, s.Pod, a.ID, client.Span{}, a.Size)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r.Body)
	return errors.Join(err, r.Body.Close(), s.Client.DropArtifact(ctx, s.Pod, a.ID))
}

func process(ctx context.Context, s *soaked, _ int) error {
	return s.converse(ctx, client.ProcessRequest{Command: "while read -r line; do echo \"got $line\"; done"})
}

func terminal(ctx context.Context, s *soaked, _ int) error {
	return s.converse(ctx, client.ProcessRequest{Command: "while read -r line; do echo \"got $line\"; done", Terminal: &client.Terminal{Rows: 10}})
}

// converse starts a process, talks to it and kills it.
func (s *soaked) converse(ctx context.Context, r client.ProcessRequest) error {
	p, err := s.Client.StartProcess(ctx, s.Pod, r)
	if err != nil {
		return err
	}
	if _, err := s.Client.ProcessInput(ctx, s.Pod, p.ID, client.ProcessInput{Data: "word\n"}); err != nil {
		return err
	}
	var text string
	for offset := int64(0); !strings.Contains(text, "got word"); {
		out, err := s.Client.ProcessOutput(ctx, s.Pod, p.ID, client.OutputQuery{Offset: offset, Wait: time.Minute})
		if err != nil {
			return err
		}
		if !out.Running {
			return fmt.Errorf("it ended after %q", text)
		}
		text += out.Output
		offset = out.NextOffset
	}
	return s.Client.SignalProcess(ctx, s.Pod, p.ID, "KILL")
}

// endProcesses waits for the end of all processes and jobs.
func (s *soaked) endProcesses(ctx context.Context) error {
	list, err := s.Client.Processes(ctx, s.Pod)
	if err != nil {
		return err
	}
	for _, p := range list.Processes {
		for offset := p.OutputEnd; p.Running; {
			out, err := s.Client.ProcessOutput(ctx, s.Pod, p.ID, client.OutputQuery{Offset: offset, Wait: time.Minute})
			if err != nil {
				return err
			}
			offset, p.Running = out.NextOffset, out.Running
		}
	}
	return nil
}
