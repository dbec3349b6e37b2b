package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// Many edits, lists and reads at a time keep to the agent's bound.
func TestManyEditsKeepToTheMemory(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{shipped: true})
	const calls = 300
	for i := range calls {
		if err := os.WriteFile(filepath.Join(a.workspace, fmt.Sprint(i)), []byte("old "+strings.Repeat("x", 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	idle := a.memory(t)
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			name := fmt.Sprint(i)
			var err error
			switch i % 10 {
			case 0:
				_, err = a.client.ListFiles(t.Context(), a.pod, client.Listing{})
			case 1:
				_, err = a.client.ReadLines(t.Context(), a.pod, name, client.Lines{Limit: client.MaxFileRead})
			default:
				_, err = a.client.EditFile(t.Context(), a.pod, name, []client.Edit{{Old: "old", New: strings.Repeat("n", 35<<10)}})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	more := a.peak(t) - idle
	t.Logf("%d KiB more", more>>10)
	if more > 32<<20 {
		t.Errorf("the agent took %d MiB more", more>>20)
	}
}
