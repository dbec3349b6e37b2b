package shell

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/process"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// session is a shell whose processes are started by the test itself.
type session struct {
	*Shell
	t      *testing.T
	reaper *process.Reaper
	dir    string
}

// newSession returns one of bash, or of sh.
func newSession(t *testing.T, kind string) session {
	t.Helper()
	reaper, err := process.NewReaper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reaper.Close)
	dir := t.TempDir()
	config := Config{Reaper: reaper, Dir: dir, Environ: []string{"PATH=/usr/bin:/bin", "FROM=container"}, RestoreLimits: func() error { return nil }}
	s := session{New(config), t, reaper, dir}
	if kind == wire.ShellSh {
		s.Shell = &Shell{config: config, queue: queue{limit: wire.QueueLength}, interp: newSh(config, "/bin/sh")}
		s.kind.Store(wire.ShellSh)
	} else if s.Kind() != wire.ShellBash {
		t.Fatal("this test needs a bash")
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// run runs a command in the shell.
func (s session) run(command string) string {
	s.t.Helper()
	r, err := s.Run(s.t.Context(), Command{Text: command, Timeout: 10 * time.Second, OutputBytes: 1 << 16})
	if err != nil {
		s.t.Fatal(err)
	}
	if r.Notice != "" {
		s.t.Errorf("%q: notice %q", command, r.Notice)
	}
	return string(r.Stdout.Head) + string(r.Stderr.Head)
}

// life returns that of a bash, when it is ready for a command.
func (s session) life() *life {
	b := s.interp.(*bash)
	<-b.settled
	return b.life
}

// launch runs a command beside the shell, and returns what it writes.
func (s session) launch(c Command) (output string, code int) {
	s.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Close()
	var child *process.Child
	err = s.Launch(s.t.Context(), c, func(l Launch) (err error) {
		defer w.Close()
		null, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		defer null.Close()
		child, err = s.reaper.Start(l.Path, l.Argv, &syscall.ProcAttr{
			Dir: fmt.Sprintf("/proc/self/fd/%d", l.Dir.Fd()), Env: l.Env,
			Files: []uintptr{null.Fd(), w.Fd(), w.Fd(), l.Command.Fd(), l.State.Fd()},
		})
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		s.t.Fatal(err)
	}
	<-child.Exited()
	return string(data), child.ExitCode()
}

func (s session) output(command string) string {
	s.t.Helper()
	out, _ := s.launch(Command{Text: command})
	return out
}

// TestLaunchGoesOnWhereTheShellIs: each setup is followed by what a process
// must see.
func TestLaunchGoesOnWhereTheShellIs(t *testing.T) {
	s := newSession(t, wire.ShellBash)
	if err := os.Symlink("/usr", filepath.Join(s.dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, setup, process, want string }{
		{"nothing done", `:`, `pwd; umask; echo "$FROM"`, s.dir + "\n0022\ncontainer\n"},
		{"exported", `export A=$'a\nb"$x\x27\\'; B=hidden`, `printf '%s' "$A$B"`, "a\nb\"$x'\\"},
		{"invalid UTF-8", `export A=$'\xff\x01\xc3'`, `printf '%s' "$A"`, "\xff\x01\xc3"},
		{"unset", `unset FROM A`, `echo "${FROM-gone}${A-gone}"`, "gonegone\n"},
		{"function", `f() { echo "f $1: it's"; }; export -f f; g() { :; }`, `f 1; type g >/dev/null 2>&1 || echo no g; bash -c 'f 2'`, "f 1: it's\nno g\nf 2: it's\n"},
		{"functions named as builtins", `mapfile() { :; }; eval() { :; }; export -f mapfile eval`, `echo on`, "on\n"},
		{"after functions named as builtins", `unset -f mapfile eval`, `echo on`, "on\n"},
		{"umask", `umask 027`, `umask`, "0027\n"},
		{"directory", `cd /tmp`, `pwd; pwd -P`, "/tmp\n/tmp\n"},
		{"by a link", `cd ` + s.dir + `/link`, `pwd; pwd -P`, s.dir + "/link\n/usr\n"},
		{"PWD is another's", `PWD=/etc`, `pwd`, s.dir + "/link\n"},
		{"directory that is gone", `mkdir -p "$OLDPWD/gone" && cd -P "$OLDPWD/gone" && rmdir "$PWD"`, `{ readlink /proc/self/cwd; } 2>/dev/null`, "/tmp/gone (deleted)\n"},
		{"read-only variables", `cd /; export UID; readonly R=1; export R; export SHELLOPTS`, `echo "$R$UID"`, fmt.Sprintf("1%d\n", os.Getuid())},
		{"posix mode", `set -o posix; export Q=q`, `echo "$R$Q"; f 1`, "1q\nf 1: it's\n"},
		{"no longer", `set +o posix; export -n SHELLOPTS UID`, `:`, ""},
		{"set -aux", `set -au; n=1`, `echo "$n$none"`, "1\n"},
		{"set -e", `set +u; set -e; :`, `echo on`, "on\n"},
		{"set -x", `set +ae -x`, `echo on`, "on\n"},
		{"noclobber, noglob", `set +x; set -Cf`, `echo on`, "on\n"},
		{"many", `for i in {1..2000}; do export "V$i=$i$i$i$i$i$i"; done`, `echo "$V2000"`, strings.Repeat("2000", 6) + "\n"},
	} {
		s.run(c.setup)
		got := s.output(c.process)
		if _, rest, found := strings.Cut(got, "shell-init: error"); found { // bash's word on a directory that is gone
			_, got, _ = strings.Cut(rest, "\n")
		}
		if got != c.want {
			t.Errorf("%s: want %q, got %q", c.name, c.want, got)
		}
	}
}

// TestLaunchLeavesTheShellAlone: what a shell is must not be changed by being
// asked for.
func TestLaunchLeavesTheShellAlone(t *testing.T) {
	s := newSession(t, wire.ShellBash)
	s.run(`n=0; trap 'n=$((n+1))' DEBUG`)
	s.run(`trap - DEBUG; trap 'echo err' ERR; set -x; sleep 100 & job=$!; (exit 7)`)
	if got := s.output(`echo "$? ${job-none}"`); got != "0 none\n" {
		t.Errorf("got %q", got)
	}
	if got := s.output(`exit 3`); got != "" {
		t.Errorf("got %q", got)
	}
	got := s.run(`echo "$? $(( $! == job )) $(jobs -r | wc -l) $(trap -p ERR)"; set +x; kill "$!"`)
	if want := "7 1 1 trap -- 'echo err' ERR\n"; !strings.HasPrefix(got, want) {
		t.Errorf("want %q, got %q", want, got)
	}
	// A DEBUG trap counts the same with and without.
	count := func(launches int) string {
		s.run(`trap - ERR; n=0; trap 'n=$((n+1))' DEBUG`)
		for range launches {
			s.output(`:`)
		}
		return s.run(`trap - DEBUG; echo "$n"`)
	}
	if without, with := count(0), count(3); without != with {
		t.Errorf("a DEBUG trap ran %s times without and %s with launches", without, with)
	}
}

func TestLaunchWithoutASpare(t *testing.T) {
	s := newSession(t, wire.ShellBash)
	s.run(`export A=b; false`)
	for name, sig := range map[string]unix.Signal{"killed": unix.SIGKILL, "stopped": unix.SIGSTOP} {
		life := s.life()
		if err := life.spare.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if sig == unix.SIGKILL && !life.spare.Ended(10*time.Second) {
			t.Fatal("the spare lives")
		}
		if got := s.output(`echo "$A"`); got != "b\n" {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if got := s.run(`echo "$? $A"`); got != "1 b\n" {
		t.Errorf("got %q", got)
	}
	// The spare that came after still goes on when it is needed.
	s.run(`B=c`)
	r, err := s.Run(t.Context(), Command{Text: "exit 4", Timeout: 10 * time.Second})
	if err != nil || r.ExitCode != 4 {
		t.Errorf("got %+v, %v", r, err)
	}
	if got := s.run(`echo "$? $A$B"`); got != "4 bc\n" {
		t.Errorf("got %q", got)
	}
}

// A job may kill the shell between two commands: the spare goes on with all that
// it knows.
func TestLaunchAfterTheShellWasKilled(t *testing.T) {
	s := newSession(t, wire.ShellBash)
	s.run(`export A=b; B=c; cd /tmp`)
	shell := s.life().main
	if err := unix.Kill(shell.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-shell.Exited()
	if got := s.output(`echo "$A"; pwd`); got != "b\n/tmp\n" {
		t.Errorf("got %q", got)
	}
	r := s.result(Command{Text: `echo "$A$B"`})
	if string(r.Stdout.Head) != "bc\n" || !strings.Contains(r.Notice, "ended between two commands") {
		t.Errorf("the shell afterwards: %+v", r)
	}
}

func TestLaunchTakesCommandAsItIs(t *testing.T) {
	for _, kind := range []string{wire.ShellBash, wire.ShellSh} {
		t.Run(kind, func(t *testing.T) { testLaunchTakesCommandAsItIs(newSession(t, kind)) })
	}
}

func testLaunchTakesCommandAsItIs(s session) {
	t := s.t
	s.run("export A='a b'; umask 077; cd /tmp")
	for _, c := range []struct {
		command Command
		want    string
		code    int
	}{
		{Command{Text: `printf '%s.%s' "$A" "$(umask)"; pwd; exit 3`}, "a b.0077/tmp\n", 3},
		{Command{Text: "cat <<'E'\n'\"$x\nE\n"}, "'\"$x\n", 0},
		{Command{Text: "echo 'a'; false\n\n"}, "a\n", 1},
		{Command{Text: "kill -9 $$"}, "", 137},
		{Command{Text: `echo "$X"; pwd`, Cwd: "/usr/../etc", Env: []string{"X=a'b $Y"}}, "a'b $Y\n/etc\n", 0},
		{Command{Text: `ls -l /proc/self/fd | grep -c memfd`}, "0\n", 1},
		{Command{Text: ": " + strings.Repeat("x", 1<<20) + "; echo on"}, "on\n", 0},
	} {
		if got, code := s.launch(c.command); got != c.want || code != c.code {
			t.Errorf("%.40q: want %q, %d, got %q, %d", c.command.Text, c.want, c.code, got, code)
		}
	}
	for _, bad := range []Command{{Text: "echo 'a"}, {Text: "}"}, {Text: "echo never", Cwd: "/nowhere"}} {
		if got, code := s.launch(bad); code == 0 || got == "" || strings.Contains(got, "never\n") {
			t.Errorf("%q: got %q, %d", bad.Text, got, code)
		}
	}
	if got := s.run(`echo "$A.${X-unset}"; pwd`); got != "a b.unset\n/tmp\n" {
		t.Errorf("the shell afterwards: %q", got)
	}
}

func TestLaunchWaitsItsTurn(t *testing.T) {
	s := newSession(t, wire.ShellBash)
	var order []string
	first := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := s.Launch(t.Context(), Command{Text: ":"}, func(Launch) error {
			close(first)
			for { // until the command waits behind
				s.queue.mu.Lock()
				waiting := len(s.queue.waiting)
				s.queue.mu.Unlock()
				if waiting == 1 {
					break
				}
			}
			order = append(order, "launch")
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}()
	<-first
	s.run(`:`)
	order = append(order, "command")
	<-done
	if !slices.Equal(order, []string{"launch", "command"}) {
		t.Errorf("got %v", order)
	}
}
