package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/session"
)

// gatewayMemory is P8 for the gateway: what its largest replica takes before the
// first call.
func gatewayMemory(ctx context.Context, b *bench) ([]result, error) {
	_, memory, err := b.gatewayUsage(ctx)
	if err != nil {
		return nil, fmt.Errorf("P8, gateway: %w", err)
	}
	return []result{size("P8", "resident memory of an idle gateway", 40, memory)}, nil
}

// agentMemory is P8 for the agent: what it takes and how large its program is, in
// a session that has run its first command.
func agentMemory(ctx context.Context, b *bench) ([]result, error) {
	s, err := b.connect(ctx, "memory")
	if err != nil {
		return nil, fmt.Errorf("P8, agent: %w", err)
	}
	if err := bashTrue(ctx, s); err != nil {
		return nil, fmt.Errorf("P8, agent: %w", err)
	}
	// Builtins alone, so that any image will do.
	fields, err := numbers(ctx, s, `while read -r k v _; do case $k in VmRSS:) echo "$v"; esac; done </proc/1/status; wc -c </.berth/berth-agent`, 2)
	if err != nil {
		return nil, fmt.Errorf("P8, agent: %w", err)
	}
	return []result{
		size("P8", "resident memory of an idle agent, after its first command", 15, fields[0]*1024),
		size("P8", "the agent's program on disk", 15e6/(1<<20), fields[1]),
	}, s.Close()
}

// numbers runs a command that prints n numbers.
func numbers(ctx context.Context, s *session.Session, command string, n int) ([]float64, error) {
	result, err := s.Bash(ctx, command)
	if err != nil {
		return nil, err
	}
	words := strings.Fields(result.Stdout)
	if result.ExitCode != 0 || len(words) != n {
		return nil, fmt.Errorf("%q gave exit code %d and %q %q, want %d numbers", command, result.ExitCode, result.Stdout, result.Stderr, n)
	}
	var all []float64
	for _, word := range words {
		number, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, number)
	}
	return all, nil
}

// gatewayUsage asks the gateway's replicas, by their metrics, what they have used:
// processor time of all in seconds, and memory of the largest in bytes.
func (b *bench) gatewayUsage(ctx context.Context) (seconds, memory float64, err error) {
	pods, err := b.ReadyPods(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: "berth-gateway"})
	if err != nil {
		return 0, 0, err
	}
	for _, pod := range pods {
		gauges, err := b.Scrape(ctx, client.ObjectKeyFromObject(&pod))
		if err != nil {
			return 0, 0, err
		}
		seconds += gauges["process_cpu_seconds_total"]
		memory = max(memory, gauges["process_resident_memory_bytes"])
	}
	return seconds, memory, nil
}
