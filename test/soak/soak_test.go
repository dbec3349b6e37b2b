package soak

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// What may be more at the end than at the beginning: connections that are just
// being closed, a heap that breathes, threads of the runtime.
const (
	moreDescriptors = 24
	moreThreads     = 16
	moreRSS         = 16 << 20
	moreDisk        = logBytes + 4<<20
)

// warmRounds is how often each action is done before the first look: logs of
// 1 MiB fill their bound.
const warmRounds = 12

// callers is how many call the agent at a time: commands wait for each other.
const callers = 4

// TestSoak: after thousands of mixed commands an agent is what it was after the
// first ones.
func TestSoak(t *testing.T) {
	t.Parallel()
	s := start(t)
	// Whatever is kept up to a bound is there from now on: ended processes, a
	// supervisor, logs, buffers.
	for range client.MaxProcesses {
		if _, err := s.Client.StartProcess(t.Context(), s.Pod, client.ProcessRequest{Command: "echo x"}); err != nil {
			t.Fatal(err)
		}
	}
	s.mix(t, warmRounds*len(actions), 1)
	before := s.usage(t)
	stop := s.watchHealth(t, "mixed commands")
	s.mix(t, *commands, 2)
	stop()
	after := s.usage(t)
	t.Logf("before: %v\nafter %d commands: %v", before, *commands, after)
	if after.processes > before.processes || after.descriptors > before.descriptors+moreDescriptors ||
		after.threads > before.threads+moreThreads || after.rss > before.rss+moreRSS || after.disk > before.disk+moreDisk {
		t.Error("more is in use than before")
	}
	result, err := s.Run(t.Context(), client.ExecRequest{Command: "echo alive"})
	if err != nil || result.Stdout != "alive\n" {
		t.Errorf("want a shell that serves, got %+v, %v", result, err)
	}
}

// mix runs so many actions, in an order that seed gives, and leaves nothing
// running.
func (s *soaked) mix(t *testing.T, n int, seed uint64) {
	t.Helper()
	order := make(chan int)
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for i := range order {
				if err := actions[i%len(actions)].do(t.Context(), s, i); err != nil {
					t.Errorf("%s: %v", actions[i%len(actions)].name, err)
				}
			}
		})
	}
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(n) {
		order <- i
	}
	close(order)
	running.Wait()
	// Jobs are over when what they held is: the agent is told of it.
	if _, err := s.Run(t.Context(), client.ExecRequest{Command: "wait; exit 0"}); err != nil {
		t.Error(err)
	}
	if err := s.endProcesses(t.Context()); err != nil {
		t.Error(err)
	}
	s.Client.Close()
}
