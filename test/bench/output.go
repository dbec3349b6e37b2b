package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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
	measured, err := outputRate(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("P4: %w", err)
	}
	return []result{measured}, nil
}

func outputRate(ctx context.Context, b *bench) (result, error) {
	pod, agent, err := b.agentOf(ctx, "output")
	if err != nil {
		return result{}, err
	}
	defer agent.Close()
	streamed := &contender{perRound: 1, do: timed(func() error { return stream(ctx, agent, pod) })}
	plain := &contender{perRound: 1, do: func() (time.Duration, error) { return receivePlain(ctx) }}
	if err := alternate(outputRounds, streamed, plain); err != nil {
		return result{}, err
	}
	perSecond := func(s samples) float64 { return outputBytes / (1 << 20) / s.percentile(50).Seconds() }
	return rates("P4", "1 GiB of a command's output in frames, agent to client, p50, against the same bytes over one TCP connection of loopback, p50",
		0.5, perSecond(streamed.samples), perSecond(plain.samples), "MiB/s"), nil
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

// plainArgument makes this program the peer: it sends outputBytes over one
// connection.
const plainArgument = "plain-sender"

// chunk is what the peer writes and both sides read at a time, as agent and
// client do.
const chunk = 256 << 10

// sendPlain connects to address and sends.
func sendPlain(address string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	buffer := make([]byte, chunk)
	for range outputBytes / chunk {
		if _, err := conn.Write(buffer); err != nil {
			return err
		}
	}
	return conn.Close()
}

// receivePlain starts a sender and times its bytes, from the connection on.
func receivePlain(ctx context.Context) (took time.Duration, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	_, _, stop, err := startSelf(ctx, plainArgument, listener.Addr().String())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	conn, err := listener.Accept()
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	started := time.Now()
	// Only a reader: the kernel could else move the bytes without this program.
	n, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{conn}, make([]byte, chunk))
	if err == nil && n != outputBytes {
		err = fmt.Errorf("%d of %d bytes came", n, outputBytes)
	}
	return time.Since(started), err
}
