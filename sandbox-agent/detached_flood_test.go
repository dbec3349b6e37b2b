package main

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// detachEach sends so many commands, a few at a time, that each outlive their call,
// and waits for their ends. It gives their ids in the order that they ended in.
func (a *agent) detachEach(t testing.TB, n int, name string, request client.ExecRequest) (ids []string) {
	t.Helper()
	next := make(chan int)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range next {
				r := request
				r.ID, r.DetachAfter = fmt.Sprintf("%s-%d", name, i), 0.001
				_, state, err := a.client.ExecDetachable(t.Context(), a.pod, r)
				if err != nil || state == nil {
					t.Errorf("%s: detached %v, %v", r.ID, state, err)
					continue
				}
				// 8 that end at once make none of those room that has just ended.
				if state, err = a.client.ExecState(t.Context(), a.pod, r.ID, time.Minute); err != nil || state.Running {
					t.Errorf("%s: %+v, %v", r.ID, state, err)
				}
				mu.Lock()
				ids = append(ids, r.ID)
				mu.Unlock()
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
	return ids
}

// TestManyDetachedCommands leave what is bounded: 64 results, 64 MiB, and of the
// agent's memory and descriptors next to nothing.
func TestManyDetachedCommands(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{shipped: true, limits: client.Limits{OutputBytes: 4 << 20}})
	big := client.ExecRequest{Command: "sleep 0.005; head -c 3000000 /dev/zero | tr '\\0' x", MaxOutputBytes: 4 << 20}
	for range 20 { // what it takes anyhow
		a.exec(t, big)
	}
	before := a.memory(t)
	a.detachEach(t, 200, "small", client.ExecRequest{Command: "sleep 0.005; echo hi"})
	large := a.detachEach(t, 30, "large", big)
	after, files := a.memory(t), a.descriptors(t)
	t.Logf("%d KiB of memory, then %d; %d files", before>>10, after>>10, files)
	kept := 0
	for _, id := range append(large, "small-0", "small-199") {
		state, err := a.client.ExecState(t.Context(), a.pod, id, 0)
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			t.Fatal(err)
		}
		if err == nil {
			kept += len(state.Result.Stdout)
		}
	}
	if kept > 64<<20 || kept < 58<<20 {
		t.Errorf("%d bytes are kept", kept)
	}
	if after-before > 16<<20 {
		t.Errorf("memory grew by %d KiB", (after-before)>>10)
	}
	if want := 64 << 20 / 3_000_000; files > want {
		t.Errorf("%d files are open, want %d", files, want)
	}
}
