package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

const (
	outputBytes  = 1 << 30
	outputRounds = 5
	outputTime   = time.Minute
)

// output is P4: a command's output, streamed from the agent in its pod, against
// the same bytes over one plain connection.
func output(ctx context.Context, b *bench) ([]result, error) {
	measured, err := outputRate(ctx, b.image)
	if err != nil {
		return nil, fmt.Errorf("P4: %w", err)
	}
	return []result{measured}, nil
}

// outputCPUs is the limit of the pod: command and agent work at the same time, as
// the two ends of the plain connection do.
const outputCPUs = "2"

func outputRate(ctx context.Context, image string) (_ result, err error) {
	b, err := setUp(ctx, image, outputCPUs)
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, b.tearDown()) }()
	pod, agent, err := b.agentOf(ctx, "output")
	if err != nil {
		return result{}, err
	}
	defer agent.Close()
	streamed := &contender{perRound: 1, do: timed(func() error { return stream(ctx, agent, pod) })}
	plain := &contender{perRound: 1, do: func() (time.Duration, error) { return receivePlain(ctx, outputBytes, io.Discard) }}
	if err := alternate(outputRounds, streamed, plain); err != nil {
		return result{}, err
	}
	return rates("P4", "1 GiB of a command's output in frames, agent to client, p50, against the same bytes over one TCP connection of loopback, p50",
		0.5, streamed.perSecond(outputBytes), plain.perSecond(outputBytes), "MiB/s"), nil
}

// stream runs a command that writes outputBytes and takes them all.
func stream(ctx context.Context, agent *client.Client, pod client.Pod) error {
	command := client.ExecRequest{
		Command: fmt.Sprintf("dd if=/dev/zero bs=%d count=%d 2>/dev/null", chunk, outputBytes/chunk),
		Timeout: outputTime.Seconds(), NoLog: true,
	}
	received := 0
	answer, err := agent.ExecStream(ctx, pod, command, outputTime, func(_ byte, data []byte) error {
		received += len(data)
		return nil
	})
	if err == nil && (answer.ExitCode != 0 || received != outputBytes) {
		err = fmt.Errorf("exit code %d, %d of %d bytes came: %s", answer.ExitCode, received, outputBytes, answer.Stderr)
	}
	return err
}
