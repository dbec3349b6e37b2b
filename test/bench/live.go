package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/session"
)

const (
	liveRounds       = 20
	throughputRounds = 6
	throughputSlice  = 2 * time.Second
	parallelSessions = 8
)

// live is P2: `bash true` on a live session through the gateway.
func live(ctx context.Context, b *bench) ([]result, error) {
	latency, err := liveLatency(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("P2, latency: %w", err)
	}
	throughput, err := liveThroughput(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("P2, calls per second: %w", err)
	}
	return []result{latency, throughput}, nil
}

// liveLatency compares a call with what `kubectl exec` does, in the same pod.
func liveLatency(ctx context.Context, b *bench) (result, error) {
	const id = "live"
	s, err := b.connect(ctx, id)
	if err != nil {
		return result{}, err
	}
	if err := bashTrue(ctx, s); err != nil {
		return result{}, err
	}
	sandbox, err := b.sandbox(ctx, id)
	if err != nil {
		return result{}, err
	}
	pod := client.ObjectKey{Namespace: b.namespace, Name: sandbox.Status.PodName}
	calls := &contender{perRound: 200, do: timed(func() error { return bashTrue(ctx, s) })}
	execs := &contender{perRound: 10, do: timed(func() error {
		executor, err := b.Executor(pod, v1alpha1.SessionContainerName, "true")
		if err != nil {
			return err
		}
		return executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: io.Discard, Stderr: io.Discard})
	})}
	if err := alternate(liveRounds, calls, execs); err != nil {
		return result{}, err
	}
	return ratioOfMedians("P2", "`bash true` on a live session through the gateway",
		"client-go remotecommand `true` in the same pod", 0.013, calls.samples, execs.samples), s.Close()
}

// liveThroughput compares calls per second at eight sessions with those of a
// no-op tool on a stock SDK server, for as many clients of the same kind.
func liveThroughput(ctx context.Context, b *bench) (result, error) {
	address, stop, err := startStock(ctx)
	if err != nil {
		return result{}, err
	}
	var berth, stock []func(context.Context) error
	for i := range parallelSessions {
		s, err := b.connect(ctx, fmt.Sprintf("parallel-%d", i))
		if err != nil {
			return result{}, errors.Join(err, stop())
		}
		berth = append(berth, func(ctx context.Context) error { return bashTrue(ctx, s) })
		n, err := session.Connect(ctx, session.Target{Address: address})
		if err != nil {
			return result{}, errors.Join(err, stop())
		}
		stock = append(stock, func(ctx context.Context) error {
			_, err := n.CallTool(ctx, &mcp.CallToolParams{Name: noop, Arguments: struct{}{}})
			return err
		})
	}
	ours, theirs, err := alternateRates(ctx, berth, stock)
	if err := errors.Join(err, stop()); err != nil {
		return result{}, err
	}
	return rates("P2", fmt.Sprintf("`bash true` calls per second at %d sessions, against a no-op tool on a stock SDK server", parallelSessions),
		0.5, ours, theirs, "calls/s"), nil
}

// alternateRates gives calls per second of both, measured in alternating slices
// of time after one of each for warming up.
func alternateRates(ctx context.Context, a, b []func(context.Context) error) (rateA, rateB float64, err error) {
	rates := map[bool]*rate{false: {callers: a}, true: {callers: b}}
	for round := range 1 + throughputRounds {
		order := []bool{false, true}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, which := range order {
			if round == 1 {
				rates[which].calls, rates[which].elapsed = 0, 0
			}
			if err := rates[which].run(ctx, throughputSlice); err != nil {
				return 0, 0, err
			}
		}
	}
	return rates[false].perSecond(), rates[true].perSecond(), nil
}

// rate counts what several callers do at once, each one call after the other.
type rate struct {
	callers []func(context.Context) error
	calls   int64
	elapsed time.Duration
}

func (r *rate) perSecond() float64 { return float64(r.calls) / r.elapsed.Seconds() }

// run lets all callers go on until the slice is over; calls in flight then are
// finished and counted, and so is the time that they take.
func (r *rate) run(ctx context.Context, slice time.Duration) error {
	var (
		all    sync.WaitGroup
		calls  atomic.Int64
		failed = make(chan error, len(r.callers))
	)
	started := time.Now()
	for _, call := range r.callers {
		all.Go(func() {
			for time.Since(started) < slice {
				if err := call(ctx); err != nil {
					failed <- err
					return
				}
				calls.Add(1)
			}
		})
	}
	all.Wait()
	close(failed)
	r.calls += calls.Load()
	r.elapsed += time.Since(started)
	return <-failed
}
