package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// step is one command and what it must give. Empty fields must be empty,
// unless any says otherwise.
type step struct {
	run     string
	timeout float64
	stdin   string
	stdout  string
	code    int
	stderr  string // a part of it
	timed   bool
	any     bool // whatever it prints
	notice  string
}

const noticeReplaced = "The session goes on as it was before this command."

// next is the step that proves that the shell still serves.
var next = step{run: `echo "next $x"`, stdout: "next kept\n"}

// TestShell runs sequences of commands, each in an agent of its own. Before
// each sequence x=kept is set.
func TestShell(t *testing.T) {
	for name, steps := range map[string][]step{
		// Streams.
		"no final newline":            {{run: `printf foo`, stdout: "foo"}, next},
		"trailing newlines":           {{run: `printf 'a\n\n\n'`, stdout: "a\n\n\n"}},
		"leading white space":         {{run: "  \n\t echo '  a'", stdout: "  a\n"}},
		"blank command":               {{run: "  "}, {run: "\n"}, {run: "# comment"}, next},
		"streams apart":               {{run: `echo out; echo err >&2`, stdout: "out\n", stderr: "err\n"}},
		"NUL bytes":                   {{run: `printf 'a\0b'`, stdout: "a\x00b"}},
		"invalid UTF-8":               {{run: `printf 'a\377\376b\303'`, stdout: "a\uFFFD\uFFFDb\uFFFD"}},
		"control bytes":               {{run: `printf '\001\033[31m\r\n'`, stdout: "\x01\x1b[31m\r\n"}},
		"protocol look-alikes":        {{run: `printf 'D0\nR1\nS1\n'; printf 'D7\n' >&2`, stdout: "D0\nR1\nS1\n", stderr: "D7\n"}, next},
		"stdin is empty":              {{run: `cat; read a; echo "got $?"`, stdout: "got 1\n"}},
		"stdin is given":              {{run: `cat`, stdin: "a\nb", stdout: "a\nb"}, {run: `cat`}},
		"stdin is not read":           {{run: `echo hi`, stdin: strings.Repeat("x", 200_000), stdout: "hi\n"}, {run: `cat`}, next},
		"stdin is larger than a pipe": {{run: `wc -c`, stdin: strings.Repeat("x", 500_000), stdout: "500000\n"}},
		"exec redirects its call":     {{run: `exec >/dev/null; echo lost`}, {run: `echo back`, stdout: "back\n"}, next},
		"exec redirects stderr":       {{run: `exec 2>&1; echo e >&2`, stdout: "e\n"}, {run: `echo e >&2`, stderr: "e\n"}},
		"stdout is closed":            {{run: `exec 1>&-; echo x`, code: 1, stderr: "write error"}, {run: `echo ok`, stdout: "ok\n"}, next},
		"protocol descriptors unseen": {{run: `ls /proc/self/fd | tr '\n' ' '`, stdout: "0 1 2 3 "}},
		"environment without agent's": {{run: `env | grep -c BERTH`, stdout: "0\n", code: 1}},
		"reopened stdout":             {{run: `echo a > /dev/stdout; echo b >> /proc/self/fd/1; echo c > /dev/fd/2`, stdout: "a\nb\n", stderr: "c\n"}},
		"stdout is not a terminal":    {{run: `[ -t 1 ] || echo no`, stdout: "no\n"}},
		"unterminated single quote":   {{run: `echo 'abc`, code: 2, stderr: "unexpected EOF"}, next},
		"unterminated double quote":   {{run: `echo "abc`, code: 2, stderr: "unexpected EOF"}, next},
		"unterminated substitution":   {{run: `echo $(`, code: 2, any: true}, next},
		"unterminated backquote":      {{run: "echo `", code: 2, any: true}, next},
		"unterminated group":          {{run: `{ echo a`, code: 2, stderr: "syntax error"}, next},
		"stray brace":                 {{run: `}`, code: 2, stderr: "syntax error"}, next},
		"stray done":                  {{run: `done; done`, code: 2, stderr: "syntax error"}, next},
		"stray paren":                 {{run: `)`, code: 2, stderr: "syntax error"}, next},
		"stray double semicolon":      {{run: `;;`, code: 2, stderr: "syntax error"}, next},
		"here-document":               {{run: "cat <<EOF\na $x\nEOF", stdout: "a kept\n"}, next},
		"here-document unterminated":  {{run: "cat <<EOF\nhi", stdout: "hi\n", stderr: "warning"}, next},
		"trailing backslash":          {{run: `echo a\`, stdout: "a\\\n"}, next},
		"error names line one":        {{run: "nosuchcommand", code: 127, stderr: "bash: line 1: nosuchcommand"}},
		"error names line two":        {{run: "true\nnosuchcommand", code: 127, stderr: "line 2: nosuchcommand"}},
		"large command":               {{run: "true '" + strings.Repeat("y", 900_000) + "'; echo ok", stdout: "ok\n"}, next},
		// Exit codes.
		"false":                        {{run: `false`, code: 1}},
		"status of the command before": {{run: `(exit 7)`, code: 7}, {run: `echo $?`, stdout: "7\n"}, {run: `false`, code: 1}, {run: `echo $?; trap 'echo err' ERR`, stdout: "1\n"}, {run: `! true`, code: 1}, {run: `echo $?`, stdout: "1\n"}, {run: `echo $?`, stdout: "0\n"}},
		"killed by a signal":           {{run: `sh -c 'kill -TERM $$'`, code: 143, any: true}, next},
		"exit":                         {{run: `x=lost; exit 3`, code: 3, notice: noticeReplaced}, next},
		"exit without status":          {{run: `false; exit`, code: 1, notice: noticeReplaced}, next},
		"exit 256":                     {{run: `exit 256`, notice: noticeReplaced}, next},
		"exit in a subshell":           {{run: `(exit 4)`, code: 4}, next},
		"set -e":                       {{run: `set -e; false; echo no`, code: 1, notice: noticeReplaced}, next, {run: `false; echo yes`, stdout: "yes\n"}},
		"set -e persists":              {{run: `set -e`}, {run: `false; echo no`, code: 1, notice: noticeReplaced}, {run: `echo $-`, stdout: "ehBc\n"}},
		"exec replaces the shell":      {{run: `exec true`, notice: noticeReplaced}, next},
		"exec of what is not there":    {{run: `exec nosuch`, code: 127, stderr: "not found", notice: noticeReplaced}, next},
		"return at top level":          {{run: `return 3`, code: 2, stderr: "can only"}, next},
		"break at top level":           {{run: `break; echo no`, notice: "break or continue"}, next},
		"continue at top level":        {{run: `continue 3; echo no`, notice: "break or continue"}, next},
		"kill -9 of the shell":         {{run: `kill -9 $BASHPID`, code: 137, notice: noticeReplaced}, next, {run: `kill -9 $BASHPID`, code: 137, notice: noticeReplaced}, next},
		"kill -9 $$":                   {{run: `kill -9 $$`, code: 137, notice: noticeReplaced}, next},
		"kill -TERM of the shell":      {{run: `kill $BASHPID; sleep 9`, code: 143, notice: noticeReplaced}, next},
		"kill -STOP of the shell":      {{run: `kill -STOP $BASHPID`, timeout: 0.3, code: 137, timed: true}, next},
		"crash of the shell":           {{run: `kill -SEGV $BASHPID`, code: 139, notice: noticeReplaced}, next},
		"unbound variable with set -u": {{run: `set -u; echo $nosuch; echo no`, code: 127, stderr: "unbound", notice: noticeReplaced}, next},
		"error expansion":              {{run: `: ${nosuch:?gone}; echo no`, code: 127, stderr: "gone", notice: noticeReplaced}, next},
		"endless recursion":            {{run: `f() { f; }; f`, timeout: 1, any: true, code: -1}, next},
		// State.
		"variables and cwd":             {{run: `cd /usr; y=1; export z=2; a=(1 "2 3"); declare -A m=([k]=v); readonly r=9; declare -i n=3`}, {run: `echo "$PWD $y $z ${a[1]} ${m[k]} $r"; n+=4; echo $n; sh -c 'echo $z'`, stdout: "/usr 1 2 2 3 v 9\n7\n2\n"}},
		"functions, aliases, options":   {{run: `f() { echo "f$1"; }; shopt -s expand_aliases extglob; alias q='echo Q'; set -o pipefail; umask 027`}, {run: `f 1; q; shopt -q extglob && echo on; false | true; echo $?; umask`, stdout: "f1\nQ\non\n1\n0027\n"}},
		"positional parameters":         {{run: `set -- a 'b c'`}, {run: `echo "$# $2"; shift`, stdout: "2 b c\n"}, {run: `echo $#`, stdout: "1\n"}},
		"declare is global":             {{run: `declare v=1; local w=2`, code: 1, stderr: "local"}, {run: `echo $v`, stdout: "1\n"}},
		"REPLY and IFS":                 {{run: `read <<< a; IFS=e`}, {run: `v=hello; echo $REPLY; set -- $v; echo $#`, stdout: "a\n2\n"}},
		"open descriptors":              {{run: `exec 7<<<'seven' 10<<<'ten' {v}<<<'any'`}, {run: `read -u7 a; read -u10 b; read -u$v c; echo $a $b $c`, stdout: "seven ten any\n"}},
		"a descriptor for writing":      {{run: `exec 5>file; echo a >&5`}, {run: `echo b >&5; exec 5>&-; cat file`, stdout: "a\nb\n"}},
		"traps":                         {{run: `trap 'echo usr' USR1`}, {run: `kill -USR1 $BASHPID; trap -p`, stdout: "usr\ntrap -- 'echo usr' SIGUSR1\n"}},
		"EXIT trap":                     {{run: `trap 'echo bye' EXIT`}, {run: `exit 2`, code: 2, stdout: "bye\n", notice: noticeReplaced}, {run: `exit 3`, code: 3, stdout: "bye\n", notice: noticeReplaced}},
		"background jobs":               {{run: `sleep 100 & p=$!`}, {run: `[ $! = $p ] && jobs -p | grep -cx $p; kill $p; wait $p; echo $?`, stdout: "1\n143\n", any: true}},
		"wait without jobs":             {{run: `wait; echo $?`, stdout: "0\n"}, {run: `jobs; wait -n; echo $?`, stdout: "127\n"}},
		"wait for two jobs":             {{run: `(exit 3) & a=$!; (exit 4) & b=$!`}, {run: `wait $a; echo $?; wait $b; echo $?`, stdout: "3\n4\n"}},
		"SIGCHLD trap and children":     {{run: `trap 'n=$((n+1))' CHLD; sleep 0 & wait`}, next},
		"INT is not ignored":            {{run: `sh -c 'kill -INT $$; echo survived'`, code: 130, any: true}, {run: `exit`, code: 130, any: true}, {run: `sh -c 'kill -INT $$; echo survived'`, code: 130, any: true}},
		"BASH_SUBSHELL after take-over": {{run: `exit 1`, code: 1, notice: noticeReplaced}, {run: `echo $BASH_SUBSHELL`, stdout: "0\n"}},
		"cwd is removed":                {{run: `mkdir d; cd d; rmdir ../d`}, {run: `pwd -P 2>/dev/null || echo gone; cd ..`, stdout: "gone\n", any: true}, next},
		"chmod 000 of home":             {{run: `chmod 000 . && cd /tmp`}, next},
		// Calls of mere programs, which don't fork a spare of their own.
		"state, mere calls, time-out": {{run: `y=1; cd /usr`}, {run: `true`}, {run: `ls /dev/null`, stdout: "/dev/null\n"}, {run: `y=2; sleep 9`, timeout: 0.3, code: 137, timed: true}, {run: `echo $y $PWD`, stdout: "1 /usr\n"}},
		"function named as a program": {{run: `ls() { y=fn; }`}, {run: `ls`}, {run: `sleep 9`, timeout: 0.3, code: 137, timed: true}, {run: `echo $y`, stdout: "fn\n"}},
		"alias named as a program":    {{run: `shopt -s expand_aliases; alias ls='y=al'`}, {run: `ls`}, {run: `sleep 9`, timeout: 0.3, code: 137, timed: true}, {run: `echo $y`, stdout: "al\n"}},
		"function that ends itself":   {{run: `ls() { y=fn; unset -f ls; }`}, {run: `ls`}, {run: `sleep 9`, timeout: 0.3, code: 137, timed: true}, {run: `echo $y`, stdout: "fn\n"}},
		"alias that ends itself":      {{run: `shopt -s expand_aliases; alias ls='y=al; unalias ls'`}, {run: `ls`}, {run: `sleep 9`, timeout: 0.3, code: 137, timed: true}, {run: `echo $y`, stdout: "al\n"}},
		"ERR trap and a mere call":    {{run: `trap 'y=err' ERR`}, {run: `false`, code: 1}, {run: `sleep 9`, timeout: 0.3, code: 137, timed: true}, {run: `echo $y`, stdout: "err\n"}},
		"traps print nothing":         {{run: `trap 'echo err' ERR; trap 'echo usr' USR1`}, {run: `true`}, {run: `ls /dev/null`, stdout: "/dev/null\n"}, {run: `echo a`, stdout: "a\n"}},
		"mere call that fails":        {{run: `false`, code: 1}, {run: `echo $?`, stdout: "1\n"}, {run: `nosuchcommand x`, code: 127, stderr: "not found"}, {run: `echo $?`, stdout: "127\n"}},
		"set -e and a mere call":      {{run: `set -e`}, {run: `false`, code: 1, notice: noticeReplaced}, next, {run: `true`}, next},
		"mere call kills the spare":   {{run: `pkill -9 -n -x bash`, any: true, code: -1}, {run: `true`, any: true, code: -1}, next, {run: `exit 3`, code: 3, notice: noticeReplaced}, next},
		"background, then mere calls": {{run: `sleep 777 & p=$!`}, {run: `true`}, {run: `sleep 9`, timeout: 0.3, code: 137, timed: true}, {run: `kill $p; echo $?`, stdout: "0\n"}},
		// Options that disturb the loop.
		"xtrace":                        {{run: `set -x; echo a`, stdout: "a\n", stderr: "+ echo a"}, {run: `echo b`, stdout: "b\n", stderr: "+ echo b"}},
		"nounset, noglob, noclobber":    {{run: `set -u; set -f; set -C; IFS=x`}, {run: `echo ok`, stdout: "ok\n"}, {run: `set +C +f +u; unset IFS`}, next},
		"posix mode":                    {{run: `set -o posix; y=1`}, next, {run: `echo $y`, stdout: "1\n"}},
		"posix mode and a syntax error": {{run: `set -o posix`}, {run: `}`, code: 2, any: true, notice: noticeReplaced}, next},
		"noexec":                        {{run: `set -n`, timeout: 0.5, any: true, code: -1, timed: true}, next},
		"DEBUG trap":                    {{run: `trap 'n=$((n+1))' DEBUG; set -T`}, next, {run: `trap - DEBUG`}, next},
		"ERR trap of the last command":  {{run: `trap 'echo err' ERR; false`, code: 1, stdout: "err\n"}, {run: `! true`, code: 1}, next},
		"set -e within functions":       {{run: `set -e; f() { false; echo no; }; f; echo no`, code: 1, notice: noticeReplaced}, next},
		"set -e and an exempt failure":  {{run: `set -e; if false; then :; fi; false || echo or`, stdout: "or\n"}, next},
		"ERR trap":                      {{run: `trap 'echo err' ERR`}, {run: `false; true`, stdout: "err\n"}, next},
		"lastpipe":                      {{run: `shopt -s lastpipe`}, {run: `echo v | read y`}, {run: `echo $y`, stdout: "v\n"}, next},
		"nocasematch, nullglob":         {{run: `shopt -s nocasematch nullglob failglob`}, next},
		"restricted":                    {{run: `set -r`, any: true, code: -1}, {run: `echo ok`, any: true, code: -1}, {run: `true`, any: true, code: -1}},
		"monitor mode":                  {{run: `set -m; sleep 50 & sleep 0; kill %1; wait; true`, any: true}, next},
		"compatible with 4.4":           {{run: `BASH_COMPAT=4.4`}, {run: `echo "next $x"`, stdout: "next kept\n", notice: "failed after"}, next},
		"functions named as builtins":   {{run: `read() { :; }; eval() { :; }; printf() { :; }; exec() { :; }; trap() { :; }; kill() { :; }`}, next},
		"a function named builtin":      {{run: `builtin() { :; }`}, next, next},
		"disabled builtins":             {{run: `enable -n read printf mapfile`, any: true, code: -1}, {run: `echo "next $x"`, any: true, stdout: "next kept\n"}, next},
		"loop variables unset":          {{run: `unset __berth __berth_loop`}, next, {run: `exit 1`, code: 1, notice: noticeReplaced}, next},
		// Hostility.
		"every descriptor closed":    {{run: `for ((i=0;i<256;i++)); do eval "exec $i>&-" 2>/dev/null; done`, any: true, code: -1}, {run: `echo ok`, any: true, stdout: "ok\n"}, {run: `echo ok`, stdout: "ok\n"}},
		"kill -9 -1":                 {{run: `kill -9 -1; echo done`, any: true, code: -1}, {run: `echo ok`, any: true, stdout: "ok\n"}, {run: `echo ok`, stdout: "ok\n"}},
		"kill -9 of shell and spare": {{run: `kill -9 -1; kill -9 $BASHPID`, code: 137, any: true}, {run: `echo "[$x]"`, any: true, stdout: "[]\n"}},
		"kill -9 $PPID":              {{run: `kill -9 $PPID; kill -9 1; echo alive`, stdout: "alive\n"}, next},
		"every signal to PID 1":      {{run: `for s in $(seq 1 64); do [ $s = 15 ] || kill -$s 1; done; echo alive`, any: true, stdout: "alive\n"}, next},
		"ulimit -u 1":                {{run: `ulimit -u 1; echo set`, stdout: "set\n"}, {run: `echo ok`, any: true, stdout: "ok\n"}, {run: `/bin/true; echo ok`, any: true, stdout: "-", code: -1}},
		"ulimit -n 4":                {{run: `ulimit -n 4`, any: true}, {run: `echo "next $x"`, stdout: "next kept\n", notice: "failed after"}, next},
		"ulimit -f 0":                {{run: `ulimit -f 0`}, next},
		"ulimit -v":                  {{run: `ulimit -v 20000`, any: true, code: -1}, {run: `true`, any: true, code: -1}},
		"thousands of descriptors":   {{run: `for ((i=300;i<900;i++)); do eval "exec $i</dev/null"; done`}, next},
		"removes temporary files":    {{run: `rm -rf /tmp/.berth* .berth* 2>/dev/null; true`}, next},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startAgent(t, agentOptions{})
			a.run(t, "x=kept")
			for i, s := range steps {
				s.check(t, i, a.exec(t, client.ExecRequest{Command: s.run, Timeout: s.timeout, Stdin: s.stdin}))
			}
		})
	}
}

func (s step) check(t *testing.T, i int, r *client.ExecResult) {
	t.Helper()
	fail := func(what, want, got any) {
		t.Helper()
		t.Errorf("step %d %.80q: %s: want %q, got %q\nresult: %+v", i, s.run, what, want, got, *r)
	}
	if s.code >= 0 && r.ExitCode != s.code {
		t.Errorf("step %d %.80q: exit code: want %d, got %d\nresult: %+v", i, s.run, s.code, r.ExitCode, *r)
	}
	if s.code >= 0 && r.TimedOut != s.timed {
		t.Errorf("step %d %.80q: timed_out: want %v\nresult: %+v", i, s.run, s.timed, *r)
	}
	if s.stdout != r.Stdout && (!s.any || s.stdout != "" && s.stdout != "-") {
		fail("stdout", s.stdout, r.Stdout)
	}
	if !s.any && (s.stderr == "" && r.Stderr != "" || !strings.Contains(r.Stderr, s.stderr)) {
		fail("stderr", s.stderr, r.Stderr)
	}
	if !s.any && (s.notice == "" && r.Notice != "" || !strings.Contains(r.Notice, s.notice)) {
		fail("notice", s.notice, r.Notice)
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
	want := &client.ExecResult{Stdout: r.Stdout, Stderr: "err\n", Truncated: true, OmittedBytes: 6888896 - 1000, StdoutBytes: 6888896, StderrBytes: 4, DurationMS: r.DurationMS}
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
