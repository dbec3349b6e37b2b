package shell

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/process"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

func TestParseRecord(t *testing.T) {
	for line, want := range map[string]record{"D0": {'D', 0}, "S123": {'S', 123}, "R9": {'R', 9}} {
		if got, ok := parseRecord(line); !ok || got != want {
			t.Errorf("%q: want %v, got %v, %v", line, want, got, ok)
		}
	}
	for _, bad := range []string{"", "D", "D-1", "Dx", "X1", "D1 ", "D99999999999999999999999999999999"} {
		if _, ok := parseRecord(bad); ok {
			t.Errorf("want %q refused", bad)
		}
	}
}

// A command can find the pipe of the records. What it leaves there, a line that
// is not ended in particular, must not keep the agent waiting.
func TestWhatACommandWritesAmongRecords(t *testing.T) {
	s := newSession(t, wire.ShellBash)
	s.run("n=kept")
	for command, code := range map[string]int{
		`printf xxx >&212; exit 3`:                3,
		`printf '%0600d' 1 >&212; exit 3`:         3,
		`printf 'F0\nx' >&212; exit 3`:            3,
		`printf xxx >&212`:                        0, // taken for one that ended early
		`printf 'D7\n' >&212`:                     7,
		`printf 'X\n\n\0\nP1\nF9\n' >&212; false`: 1,
	} {
		if r := s.result(Command{Text: command}); r.ExitCode != code {
			t.Errorf("%s: exit code %d, want %d", command, r.ExitCode, code)
		}
		if got := s.run("echo $n"); got != "kept\n" {
			t.Errorf("after %s: got %q", command, got)
		}
	}
}

// A shell may end between S and R. The spare of that S must not wait beside the
// one that goes on: they read the same pipe.
func TestOneSpareIsLeftByAShellThatEnds(t *testing.T) {
	s := newSession(t, wire.ShellBash)
	s.run("n=kept")
	l := s.life()
	child, err := spawn(s.reaper, "/bin/sleep", []string{"sleep", "1000"}, "/", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := process.NewPin(child.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Release()
	if _, err := fmt.Fprintf(l.fence, "S%d\n", second.PID); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(l.main.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-l.main.Exited()
	b := s.interp.(*bash)
	l.dropPipes()
	if !b.takeOver(l) {
		t.Fatal("the spare does not go on")
	}
	if !second.Ended(0) {
		t.Error("want the second spare ended before the first goes on")
	}
	if b.settle(nil); s.run("echo $n") != "kept\n" {
		t.Error("want the state kept")
	}
}
