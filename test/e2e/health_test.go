package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	agentclient "github.com/berth-dev/berth/sandbox-agent/client"
)

const (
	// promptly is what an agent's health may take, whatever its session runs.
	promptly = 100 * time.Millisecond
	// pace is the pause between two questions: 5 s give some hundred answers, a bomb that
	// leaves its command at once fewer, of which the longest counts then.
	pace = 10 * time.Millisecond
)

// askHealth asks an agent's health again and again, from now on until stop, which
// gives how long each answer took. Each must be "ok".
func askHealth(ctx context.Context, a *directAgent) (stop func() []time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	DeferCleanup(cancel)
	asked := make(chan []time.Duration, 1)
	go func() {
		defer GinkgoRecover()
		var took []time.Duration
		defer func() { asked <- took }()
		for {
			began := time.Now()
			health, err := a.Health(context.WithoutCancel(ctx), a.pod)
			took = append(took, time.Since(began))
			Expect(err).NotTo(HaveOccurred())
			Expect(health.Status).To(Equal(agentclient.StatusOK))
			select {
			case <-ctx.Done():
				return
			case <-time.After(pace):
			}
		}
	}()
	return func() []time.Duration { cancel(); return <-asked }
}

// expectPrompt expects that 99 of 100 answers beneath a bomb came promptly, but for
// what those of a pod beside it took, at the same time, that does nothing. A single
// answer more would be the machine's as often as the agent's: it is also halted
// itself, by the CPU limit, while it ends a bomb. That the session's processes don't
// run where the agent does is tested for itself (sandbox-agent/affinity_test.go).
// Before they didn't, the bomb that spins took 150 to 173 ms here.
func expectPrompt(beneath, beside []time.Duration) {
	GinkgoHelper()
	for _, took := range [][]time.Duration{beneath, beside} {
		slices.Sort(took)
		Expect(took).NotTo(BeEmpty())
	}
	worst := func(took []time.Duration) time.Duration { return took[len(took)*99/100] }
	AddReportEntry("health", fmt.Sprintf("p50, p99 and longest beneath: %v, %v, %v; beside: %v, %v, %v",
		beneath[len(beneath)/2], worst(beneath), beneath[len(beneath)-1], beside[len(beside)/2], worst(beside), beside[len(beside)-1]))
	Expect(worst(beneath)).To(BeNumerically("<=", promptly+worst(beside)), "p99 of %d answers", len(beneath))
}
