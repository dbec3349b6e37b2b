package shell

import (
	"context"
	"fmt"
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
	want := ""
	for i := range 30 {
		r, err := s.interp.run(gone, Command{Text: fmt.Sprintf("n=%d", i), Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if r.ExitCode != killed { // it was quicker
			want = fmt.Sprint(i)
		}
		if got := s.run(fmt.Sprintf(`echo "%d: $n"`, i)); got != fmt.Sprintf("%d: %s\n", i, want) {
			t.Fatalf("got %q, want the answer to this command, and n %q", got, want)
		}
	}
}
