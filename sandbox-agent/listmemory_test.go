package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Many lists at a time keep to the agent's bound, whatever a command called its files.
func TestListsKeepToTheMemory(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{shipped: true})
	for i := range 5000 { // more than a list holds, at six bytes a control character
		name := strings.Repeat("\x01", 240) + fmt.Sprint(i)
		if err := os.WriteFile(filepath.Join(a.workspace, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	idle := a.memory(t)
	var calls sync.WaitGroup
	for range 40 {
		calls.Go(func() {
			l, err := a.client.ListFiles(t.Context(), a.pod, client.Listing{Limit: wire.MaxListEntries})
			if err != nil || !l.Truncated || l.Next == "" {
				t.Errorf("list: %v", err)
			}
		})
	}
	calls.Wait()
	if more := a.peak(t) - idle; more > 32<<20 {
		t.Errorf("the agent took %d MiB more", more>>20)
	}
}
