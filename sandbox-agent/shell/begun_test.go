package shell

import (
	"context"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// TestCommandKilledBeforeItBegan: the shell that goes on must not take the wake
// line of a command that the shell before it has not read for its own, or each
// answer would be another command's from then on.
func TestCommandKilledBeforeItBegan(t *testing.T) {
	s := newSession(t, wire.ShellBash)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 30 {
		if _, err := s.Run(gone, Command{Text: "n=lost", Timeout: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if got := s.run(`echo "[$n]"`); got != "[]\n" {
			t.Fatalf("got %q, want the answer to this command", got)
		}
	}
}
