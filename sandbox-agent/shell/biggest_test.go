package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// hold makes a process hold so many MB until the FIFO named go is opened.
const hold = `hold() { sh -c 'x=$(head -c '$1'000000 /dev/zero | tr "\0" x); echo > on; read -r line < go; echo "$2 ${#x}"' sh $1 $2; }; `

// fifo makes one that is open from both sides all the time: nobody waits for the
// other.
func (s session) fifo(name string) *os.File {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := unix.Mkfifo(path, 0o600); err != nil {
		s.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { f.Close() })
	return f
}

// await waits until a process holds its memory.
func (s session) await(on *os.File) {
	s.t.Helper()
	if err := on.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		s.t.Fatal(err)
	}
	if _, err := on.Read(make([]byte, 1)); err != nil {
		s.t.Fatalf("no process came to hold its memory: %v", err)
	}
}

func TestKillBiggestTakesTheCommandsFirst(t *testing.T) {
	const limit = 20_000_000
	s := newSession(t, wire.ShellBash)
	on, release := s.fifo("on"), s.fifo("go")
	kill := func() (killed bool, counted int) {
		killed = s.KillBiggest(limit, func() { counted++ })
		return
	}

	// An earlier command left one of 8 MB; the shell itself holds some.
	result := make(chan Result)
	run := func(command string) {
		go func() {
			r, err := s.Run(t.Context(), Command{Text: command, Timeout: time.Minute, OutputBytes: 1 << 16})
			if err != nil {
				t.Error(err)
			}
			result <- r
		}()
	}
	run(hold + `y=$(head -c 12000000 /dev/zero | tr "\0" x); hold 8 left >left 2>&1 & echo`)
	s.await(on)
	<-result

	run(`hold 4 big; echo "code $?"`)
	s.await(on)
	if killed, counted := kill(); !killed || counted != 1 {
		t.Errorf("killed %v, counted %d", killed, counted)
	}
	if r := <-result; string(r.Stdout.Head) != "code 137\n" || r.ExitCode != 0 || r.Notice != "" {
		t.Errorf("the command's own went with %+v", r)
	}

	run(`hold 1 small; echo "code $?"`)
	s.await(on)
	if killed, counted := kill(); !killed || counted != 1 { // the one left: what the command holds is small
		t.Errorf("killed %v, counted %d", killed, counted)
	}
	if _, err := release.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	if r := <-result; string(r.Stdout.Head) != "small 1000000\ncode 0\n" {
		t.Errorf("the small command ended with %q", r.Stdout.Head)
	}
	s.run("wait")
	if left, err := os.ReadFile(filepath.Join(s.dir, "left")); err != nil || !strings.Contains(string(left), "Killed") {
		t.Errorf("the one that was left said %q, %v", left, err)
	}

	// Nothing is left but the shell and its spare.
	if !s.life().alone(time.Minute) {
		t.Error("a spare from before doesn't end")
	}
	if killed, counted := kill(); killed || counted != 0 {
		t.Errorf("killed %v, counted %d, want the idle shell left alone", killed, counted)
	}
	if got := s.run(`echo ${#y}`); got != "12000000\n" {
		t.Errorf("the shell forgot: %q", got)
	}
}
