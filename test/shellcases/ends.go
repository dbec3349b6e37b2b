package shellcases

import "fmt"

// ends: each way in which a command may end its shell. The next command finds
// the session as it was before.
var ends = []Case{
	{"exit codes 0 to 255", exitCodes()},
	{"each signal to the own shell", signals()},
	{"children killed by each signal", childSignals()},
	{"kill 0", Steps{{Run: `kill 0; sleep 9`, Code: 143, Notice: replaced}, next, {Run: `bash -c 'kill 0'`, Code: 143, Notice: replaced}, next}},
	{"kill 0 in an EXIT trap", Steps{{Run: `trap 'kill 0' EXIT; exit 1`, Code: 143, Notice: replaced}, next}},
	{"exit in a trap", Steps{{Run: `trap 'exit 5' USR1; kill -USR1 $BASHPID; echo no`, Code: 5, Notice: replaced}, next, {Run: `trap 'exit 7' EXIT; exit 4`, Code: 7, Notice: replaced}, next}},
	{"exit in a function, a loop, a pipeline", Steps{{Run: `f() { exit 3; }; f`, Code: 3, Notice: replaced}, {Run: `while :; do exit 4; done`, Code: 4, Notice: replaced}, {Run: `echo a | exit 5`, Code: 5}, {Run: `eval 'exit 6'`, Code: 6, Notice: replaced}, next}},
	{"exit in a sourced file", Steps{{Run: `echo 'exit 3' > f; . ./f`, Code: 3, Notice: replaced}, next}},
	{"logout", Steps{{Run: `logout`, Code: 1, Stderr: "not login shell"}, next}},
	{"return", Steps{{Run: `f() { return 5; }; f`, Code: 5}, {Run: `trap 'return 4' USR1; kill -USR1 $BASHPID; echo a`, Stdout: "a\n", Loose: true}, {Run: `echo 'return 6' > f; . ./f`, Code: 6}, next}},
	{"exec with options", Steps{{Run: `exec -c env`, Notice: replaced}, {Run: `exec -a foo sh -c 'echo $0'`, Stdout: "foo\n", Notice: replaced}, {Run: `exec -l bash -c 'echo $0'`, Stdout: "-bash\n", Notice: replaced}, next}},
	{"exec of a shell", Steps{{Run: `exec bash -c 'x=lost; exit 9'`, Code: 9, Notice: replaced}, next}},
	{"exec of what can't run", Steps{{Run: `echo > f; chmod 644 f; exec ./f`, Code: 126, Stderr: "Permission denied", Notice: replaced}, {Run: `exec /`, Code: 126, Loose: true}, next}},
	{"exec that fails, with execfail", Steps{{Run: `shopt -s execfail; exec nosuch; echo on`, Stdout: "on\n", Stderr: "not found"}, next}},
	{"suspend", Steps{{Run: `suspend`, Code: 1, Stderr: "cannot suspend"}, {Run: `suspend -f`, Timeout: 0.3, Code: 137, Timed: true}, next}},
	{"every process stopped", Steps{{Run: `kill -STOP -1; kill -STOP $BASHPID`, Timeout: 0.3, Code: 137, Timed: true}, next}},
	{"set -e, the variants that end it", endings(1, `set -e; (false); :`, `set -e; true && false; :`, `set -e; y=$(false); :`, `set -e; false | false; :`, `set -eo pipefail; false | true; :`, `set -e; f() { false; }; f; :`, `set -e; { false; }; :`, `set -e; eval false; :`, `set -e; ((0)); :`, `set -e; [[ a = b ]]; :`, `set -eE; trap : ERR; false; :`, `bash -ec 'false; echo no'; set -e; false`)},
	{"set -e, the variants that do not", Steps{{Run: `set -e; false || echo 1; ! true; if false; then :; fi; while false; do :; done; false && true; declare y=$(false); true | false | true; echo 2; set +e`, Stdout: "1\n2\n"}, next}},
	{"errors that end a shell", endings(AnyCode, `set -u; echo $nosuch`, `set -o posix; unset -f nosuch; readonly r=1; r=2`, `set -o posix; . ./nosuch`, `set -o posix; set -o nosuch`, `: ${nosuch?gone}`)},
	{"readonly assignment", Steps{{Run: `readonly r=1; r=2; echo no`, Code: 1, Stderr: "readonly variable"}, {Run: `echo $r`, Stdout: "1\n"}, next}},
	{"many ends in a row", manyEnds()},
}

// endings are commands that end their shell with code.
func endings(code int, commands ...string) (steps Steps) {
	for _, c := range commands {
		steps = append(steps, Step{Run: c + "; echo no; x=lost", Code: code, Loose: true}, next)
	}
	return steps
}

func exitCodes() (steps Steps) {
	for _, code := range []int{0, 1, 2, 126, 127, 128, 129, 137, 143, 254, 255} {
		steps = append(steps, Step{Run: fmt.Sprint("(exit ", code, ")"), Code: code}, Step{Run: "echo $?", Stdout: fmt.Sprintln(code)},
			Step{Run: fmt.Sprint("exit ", code), Code: code, Notice: replaced}, Step{Run: "echo $?", Stdout: fmt.Sprintln(code)})
	}
	return append(steps, Step{Run: "exit -1", Code: 255, Notice: replaced}, Step{Run: "exit 1 2", Code: 1, Stderr: "too many arguments", Notice: replaced}, next)
}

// Signals that end no shell: bash ignores QUIT, the kernel CHLD, CONT, URG and
// WINCH, and stops nobody in an orphaned process group with TSTP, TTIN, TTOU.
var harmless = map[int]bool{3: true, 17: true, 18: true, 20: true, 21: true, 22: true, 23: true, 28: true}

func signals() (steps Steps) {
	for n := 1; n <= 64; n++ {
		if n == 32 { // the C library's own: some container runtimes hand it on ignored
			continue
		}
		s := Step{Run: fmt.Sprintf("x=lost; kill -%d $BASHPID; x=kept; echo survived", n), Code: 128 + n, Notice: replaced}
		switch {
		case n == 19: // STOP
			s = Step{Run: s.Run, Timeout: 0.2, Code: 137, Timed: true}
		case harmless[n]:
			s = Step{Run: s.Run, Stdout: "survived\n"}
		}
		steps = append(steps, s, next)
	}
	return steps
}

func childSignals() (steps Steps) {
	for _, n := range []int{1, 2, 3, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15, 31, 34, 64} {
		steps = append(steps, Step{Run: fmt.Sprintf("sh -c 'kill -%d $$'", n), Code: 128 + n, Loose: true}, Step{Run: "echo $?", Stdout: fmt.Sprintln(128 + n)})
	}
	return append(steps, next)
}

func manyEnds() (steps Steps) {
	for range 100 {
		steps = append(steps, Step{Run: `x=lost; exit 1`, Code: 1, Notice: replaced}, next)
	}
	return steps
}
