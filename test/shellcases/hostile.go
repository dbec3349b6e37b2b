package shellcases

import (
	"fmt"
	"strings"
)

// hostile: commands against the agent and its shell.
var hostile = []Case{
	{"every descriptor closed", Steps{{Run: `for ((i=0;i<256;i++)); do eval "exec $i>&-" 2>/dev/null; done`, Loose: true, Code: AnyCode}, {Run: `echo ok`, Loose: true, Stdout: "ok\n"}, {Run: `echo ok`, Stdout: "ok\n"}}},
	{"kill -9 -1", Steps{{Run: `kill -9 -1; echo done`, Loose: true, Code: AnyCode}, {Run: `echo ok`, Loose: true, Stdout: "ok\n"}, {Run: `echo ok`, Stdout: "ok\n"}}},
	{"kill -9 of shell and spare", Steps{{Run: `kill -9 -1; kill -9 $BASHPID`, Code: 137, Loose: true}, {Run: `echo "[$x]"`, Loose: true, Stdout: "[]\n"}}},
	{"kill -9 $PPID", Steps{{Run: `kill -9 $PPID; kill -9 1; echo alive`, Stdout: "alive\n"}, next}},
	{"every signal to PID 1", Steps{{Run: `for s in $(seq 1 64); do [ $s = 15 ] || kill -$s 1; done; echo alive`, Loose: true, Stdout: "alive\n"}, next}},
	{"ulimit -u 1", Steps{{Run: `ulimit -u 1; echo set`, Stdout: "set\n"}, {Run: `echo ok`, Loose: true, Stdout: "ok\n"}, {Run: `/bin/true; echo ok`, Loose: true, Code: AnyCode}}},
	{"ulimit -n 4", Steps{{Run: `ulimit -n 4`, Loose: true}, {Run: `echo "next $x"`, Stdout: "next kept\n", Notice: "failed after"}, next}},
	{"ulimit -f 0", Steps{{Run: `ulimit -f 0`}, next}},
	{"ulimit -v", Steps{{Run: `ulimit -v 20000`, Loose: true, Code: AnyCode}, {Run: `true`, Loose: true, Code: AnyCode}}},
	{"thousands of descriptors", Steps{{Run: `for ((i=300;i<900;i++)); do eval "exec $i</dev/null"; done`}, next}},
	{"removes temporary files", Steps{{Run: `rm -rf /tmp/.berth* .berth* 2>/dev/null; true`}, next}},
	{"descriptors closed in parts", Steps{{Run: `for ((i=3;i<65;i++)); do eval "exec $i>&-"; done`}, next, {Run: `for ((i=65;i<200;i++)); do eval "exec $i>&-"; done`}, next, {Run: `for ((i=200;i<256;i++)); do eval "exec $i>&-"; done`, Loose: true, Code: AnyCode}, next, next}},
	{"each of the shell's own descriptors closed", each("exec %d>&-", 200, 220)},
	{"each of the shell's own descriptors overwritten", each("exec %d</dev/null", 200, 220)},
	{"junk into the control pipe", Steps{{Run: `for p in $BASHPID; do printf 'D9\nR1\nS1\njunk' > /proc/$p/fd/212; done`, Code: AnyCode, Loose: true}, {Run: `echo "next $x"`, Code: AnyCode, Loose: true}, next}},
	{"ulimit -n 3", Steps{{Run: `ulimit -n 3`, Timeout: 20, Loose: true, Code: AnyCode}, next, {Run: `ulimit -n 0`, Timeout: 20, Loose: true, Code: AnyCode}, next}},
	{"ulimit -t", Steps{{Run: `ulimit -t 1; while :; do :; done`, Timeout: 50, Code: 137, Notice: replaced}, next}},
	{"ulimit -s and a recursion", Steps{{Run: `ulimit -s 200; f() { f; }; f`, Code: 139, Notice: replaced}, next}},
	{"ulimit -v of nothing", Steps{{Run: `ulimit -v 1000`, Loose: true, Code: AnyCode}, {Run: `echo "next $x"`, Stdout: "next kept\n", Loose: true}, next}},
	{"ulimit -f and a write", Steps{{Run: `ulimit -f 0; echo a > f`, Code: 153, Notice: replaced}, next}},
	{"disk full", Steps{{Run: `echo a > /dev/full`, Code: 1, Stderr: "No space left"}, {Run: `exec 1>/dev/full; echo a`, Code: 1, Stderr: "No space left"}, next}},
	{"ptrace and descriptors of PID 1", Steps{{Run: `ls /proc/1/fd`, Code: 2, Stderr: "Permission denied"}, {Run: `cat /proc/1/environ`, Code: 1, Stderr: "Permission denied"}, {Run: `cat /proc/1/mem`, Code: 1, Stderr: "Permission denied"}, next}},
	{"clock changes", Steps{{Run: `date -s @0 >/dev/null`, Code: 1, Stderr: "not permitted"}, next}},
	{"a line of 10 MB without an end", Steps{{Run: `v=$(head -c 10000000 /dev/zero | tr '\0' a); echo ${#v}`, Stdout: "10000000\n"}, next}},
	{"an argument list that is too long", Steps{{Run: `v=$(head -c 3000000 /dev/zero | tr '\0' a); /bin/true "$v"`, Code: 126, Stderr: "Argument list too long"}, next}},
	{"an environment that is too large", Steps{{Run: `export v=$(head -c 3000000 /dev/zero | tr '\0' a)`}, {Run: `true; /bin/true`, Code: 126, Stderr: "Argument list too long"}, {Run: `unset v; /bin/true`}, next}},
	{"deep nesting", Steps{{Run: strings.Repeat("( ", 200) + "echo deep" + strings.Repeat(" )", 200), Stdout: "deep\n"}, {Run: strings.Repeat("{ ", 1000) + "echo deep" + strings.Repeat("; }", 1000), Stdout: "deep\n"}, next}},
	{"kill -9 of every bash", Steps{{Run: `for p in /proc/[0-9]*; do [[ ${p#/proc/} != $BASHPID && $(readlink $p/exe) == */bash ]] && kill -9 ${p#/proc/}; done; kill -9 $BASHPID`, Code: AnyCode, Loose: true}, {Run: `echo ok`, Stdout: "ok\n", Loose: true}, {Run: `echo ok`, Stdout: "ok\n"}}},
	{"PATH, HOME and shell removed from under it", Steps{{Run: `mkdir h; HOME=$PWD/h; cd h; rm -r ../h; PATH=/nosuch`}, next, {Run: `exit 1`, Code: 1, Notice: replaced}, next}},
	{"output to a reader that is gone", Steps{{Run: `yes | head -1; echo ${PIPESTATUS[0]}`, Stdout: "y\n141\n"}, {Run: `exec 5> >(exit); sleep 0.1; echo a >&5; echo survived`, Code: AnyCode, Loose: true}, next}},
}

// each puts the numbers from first to last into command, one at a time.
func each(command string, first, last int) (steps Steps) {
	for i := first; i <= last; i++ {
		steps = append(steps, Step{Run: fmt.Sprintf(command, i), Code: AnyCode, Loose: true, Timeout: 20}, Step{Run: `echo "next $x"`, Code: AnyCode, Loose: true, Timeout: 20})
	}
	return append(steps, Step{Run: `x=kept`, Loose: true}, next)
}
