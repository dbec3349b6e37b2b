package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/test/shellcases"
)

// TestShell runs the table of what a shell must do, each case in an agent of its
// own and as a pod's user.
func TestShell(t *testing.T) {
	start := startAgent
	if os.Getuid() == 0 {
		start = func(t testing.TB, o agentOptions) *agent { t.Helper(); return asUser(t, o) }
	}
	for _, c := range shellcases.Bash() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			a := start(t, agentOptions{})
			a.run(t, shellcases.Setup)
			a.check(t, c)
		})
	}
}

// check runs a case of the table.
func (a *agent) check(t *testing.T, c shellcases.Case) {
	t.Helper()
	for i, s := range c.Steps {
		r := a.exec(t, s.Request())
		for _, difference := range shellcases.Check(s, r) {
			t.Errorf("step %d %.80q: %s\nresult: %.1000s", i, s.Run, difference, fmt.Sprintf("%+v", *r))
		}
	}
}

// TestStateAfterTimeOut: the shell goes on as it was before the command.
func TestStateAfterTimeOut(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, `cd /usr; x=1; declare -A m=([k]=v); f() { echo "f$1"; }; shopt -s extglob expand_aliases; alias q='echo Q'
		set -o pipefail; trap 'echo usr' USR1; trap 'echo bye' EXIT; exec 7</etc/hostname; umask 027; set -- a b; ulimit -c 0`)
	r := a.exec(t, client.ExecRequest{Command: `echo partial; x=2; cd /; umask 0; unset -f f; while :; do :; done`, Timeout: 0.3})
	want := &client.ExecResult{Stdout: "partial\n", ExitCode: 137, TimedOut: true, StdoutBytes: 8, DurationMS: r.DurationMS}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("result of the command that ran out of time (-want +got):\n%s", diff)
	}
	if d := time.Duration(r.DurationMS) * time.Millisecond; d > 5*time.Second {
		t.Errorf("took %v, want less than 5 s", d)
	}
	got := a.output(t, `pwd; echo $x ${m[k]}; f 1; q; shopt -q extglob && echo ext; umask; echo $#; set -o | grep -c 'pipefail.*on'
		trap -p; read -u 7 h && echo read; ulimit -c`)
	wantState := "/usr\n1 v\nf1\nQ\next\n0027\n2\n1\ntrap -- 'echo bye' EXIT\ntrap -- 'echo usr' SIGUSR1\nread\n0\n"
	if diff := cmp.Diff(wantState, got); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

// TestTimeOutKillsTheWholeTree: nothing that the command started survives,
// however it hides; what was there before does.
func TestTimeOutKillsTheWholeTree(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{
		"child":           `sleep 777`,
		"builtin loop":    `while :; do :; done`,
		"background":      `sleep 777 & wait`,
		"setsid":          `setsid sleep 777 & setsid -f sleep 777; sleep 777`,
		"double fork":     `( ( sleep 777 & ) & ); (setsid sh -c 'sleep 777 & sleep 777' &); sleep 777`,
		"nohup":           `nohup sleep 777 >/dev/null 2>&1 & sleep 777`,
		"ignores TERM":    `trap '' TERM INT HUP; (trap '' TERM; sleep 777) & sleep 777`,
		"stopped":         `sleep 777 & kill -STOP $!; sh -c 'kill -STOP $$'`,
		"holds the pipes": `sh -c 'setsid sleep 777 & setsid sleep 777 2>&1 & exit'; sleep 777`,
		"forks for ever":  `f() { while :; do (sleep 777 &) ; done; }; f`,
		"chain of processes": `cat > fork.sh <<'E'
sh ./fork.sh & exit
E
sh ./fork.sh; sleep 777`,
		"renames itself": `exec -a innocent sleep 777`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startAgent(t, agentOptions{})
			a.output(t, `x=kept; sleep 888 & setsid -f sleep 888`)
			r := a.exec(t, client.ExecRequest{Command: command, Timeout: 0.5})
			if !r.TimedOut || r.ExitCode != 137 {
				t.Errorf("want a time-out with exit code 137, got %+v", r)
			}
			if limit := int64(5500); r.DurationMS > limit {
				t.Errorf("took %d ms, want at most %d", r.DurationMS, limit)
			}
			if got, want := a.output(t, `pgrep -fc '^(sleep 777|innocent|sh ./fork)'; pgrep -fc '^sleep 888'; echo $x`), "0\n2\nkept\n"; got != want {
				t.Errorf("survivors of the command, of before, state: want %q, got %q", want, got)
			}
		})
	}
}

// TestTimeOutSparesWhatAMereCallLeft: such a call forks no spare, by whose pid
// the processes that began in the same tick are told apart.
func TestTimeOutSparesWhatAMereCallLeft(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, `echo 'sleep 888 &' > daemon.sh`)
	for range 8 {
		a.output(t, `sh daemon.sh`)
		a.exec(t, client.ExecRequest{Command: `sleep 777`, Timeout: 0.02})
	}
	if got, want := a.output(t, `pgrep -xfc 'sleep 888'`), "8\n"; got != want {
		t.Errorf("daemons that live: want %q, got %q", want, got)
	}
}

// TestBackgroundChildrenDoNotHoldTheCall, nor write into a later result.
func TestBackgroundChildrenDoNotHoldTheCall(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	r := a.run(t, `mkfifo go; (read < go; echo late; echo late >&2; touch written) & echo now`)
	if r.Stdout != "now\n" || r.DurationMS > 2000 {
		t.Errorf("want now without a wait, got %+v", r)
	}
	if got := a.output(t, `echo > go; wait; echo second`); got != "second\n" {
		t.Errorf("want only the second command's output, got %q", got)
	}
	if got := a.output(t, `ls written`); got != "written\n" {
		t.Errorf("the leftover writer failed: %q", got)
	}
}

func TestWritesBeyondThePipeDoNotBlockALeftoverChild(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, `mkfifo done; (sleep 0.1; head -c 1000000 /dev/zero; echo ok > done) &`)
	if got := a.output(t, `cat done`); got != "ok\n" {
		t.Errorf("want ok, got %q", got)
	}
}

func TestOutputIsHeadAndTail(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	r := a.exec(t, client.ExecRequest{Command: `seq 1000000; echo err >&2`, MaxOutputBytes: 1000})
	if !strings.HasPrefix(r.Stdout, "1\n2\n3\n") || !strings.HasSuffix(r.Stdout, "\n999999\n1000000\n") {
		t.Errorf("want the first and the last lines, got %.100q...", r.Stdout)
	}
	want := &client.ExecResult{Stdout: r.Stdout, Stderr: "err\n", Truncated: true, OmittedBytes: 6888896 - 1000, StdoutBytes: 6888896, StderrBytes: 4, Log: r.Log, DurationMS: r.DurationMS}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

// TestResultFitsTheWire: the largest output of the dearest bytes.
func TestResultFitsTheWire(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	for name, bytes := range map[string]string{"control": `\001`, "invalid": `\377`, "quotes": `"`, "text": `a`, "wide": `\360\237\230\200`} {
		r := a.exec(t, client.ExecRequest{
			Command:        `y=$(printf '` + bytes + `%.0s' $(seq 100000)); for i in $(seq 60); do printf %s "$y"; printf %s "$y" >&2; done`,
			MaxOutputBytes: 4 << 20,
		})
		if r.StdoutBytes == 0 || r.StdoutBytes != r.StderrBytes {
			t.Errorf("%s: want as much of both, got %d and %d", name, r.StdoutBytes, r.StderrBytes)
		}
		if total := r.StdoutBytes + r.StderrBytes; !r.Truncated || r.OmittedBytes <= 0 || r.OmittedBytes >= total {
			t.Errorf("%s: want a part to be omitted, got %d of %d", name, r.OmittedBytes, total)
		}
	}
}

// A command that overwrites the shell's own descriptors breaks the spare's too:
// the session is begun anew rather than forget each command from then on.
func TestSessionIsAbleToRememberAgain(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.run(t, `for i in $(seq 10 250); do eval "exec $i</dev/null"; done`)
	for range 5 {
		a.run(t, "n=$((n+1))")
	}
	a.output(t, "n=1")
	for range 3 {
		a.output(t, "n=$((n+1))")
	}
	if got := a.output(t, "echo $n"); got != "4\n" {
		t.Errorf("n is %q, want what the commands before made of it", got)
	}
}

// TestTraceIsOfTheCommandAlone: with set -x a command's standard error shows what
// it did, and what it was evaluated by.
func TestTraceIsOfTheCommandAlone(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.run(t, "set -x")
	for _, c := range []struct {
		command, stdout, stderr string
		code                    int
	}{
		{"echo $-", "hxBc\n", "++ builtin eval 'echo $-'\n+++ echo hxBc\n", 0},
		{"(exit 3)", "", "++ builtin eval '(exit 3)'\n+++ exit 3\n", 3},
		{"echo $?; set -e", "3\n", "++ builtin eval 'echo $?; set -e'\n+++ echo 3\n+++ set -e\n", 0},
		{"[ a = b ] && c", "", "++ builtin eval '[ a = b ] && c'\n+++ '[' a = b ']'\n", 1},
		{"false", "", "++ builtin eval false\n+++ false\n", 1}, // ends the shell
		{"echo $- $?", "ehxBc 1\n", "+++ builtin eval 'echo $- $?'\n++++ echo ehxBc 1\n", 0},
		{"trap : DEBUG; set -T", "", "+++ builtin eval 'trap : DEBUG; set -T'\n++++ trap : DEBUG\n+++++ :\n++++ set -T\n", 0},
		{"trap - DEBUG; set +xeT", "", "+++ builtin eval 'trap - DEBUG; set +xeT'\n+++++ :\n++++ trap - DEBUG\n++++ set +xeT\n", 0},
		{"echo $-", "hBc\n", "", 0},
	} {
		r := a.exec(t, client.ExecRequest{Command: c.command})
		if r.ExitCode != c.code || r.Stdout != c.stdout || r.Stderr != c.stderr {
			t.Errorf("%q: want %d, %q and %q, got %+v", c.command, c.code, c.stdout, c.stderr, *r)
		}
	}
}
