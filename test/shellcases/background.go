package shellcases

// count tells how many processes have a command line that begins with $1,
// without the programs that an image may lack.
const count = `count() { local f n=0; for f in /proc/[0-9]*/cmdline; do [[ $({ tr '\0' ' ' <$f; } 2>/dev/null) == $1* ]] && ((n++)); done; echo $n; }`

// trees: time-out kills the whole tree of a command, and no other process.
var trees = []Case{
	{"time-out kills children", killed(`sleep 777 & sleep 777`)},
	{"time-out kills a builtin loop", killed(`while :; do :; done`)},
	{"time-out kills setsid children", killed(`setsid sleep 777 & setsid -f sleep 777; sleep 777`)},
	{"time-out kills double forks", killed(`( ( sleep 777 & ) & ); (setsid sh -c 'sleep 777 & sleep 777' &); sleep 777`)},
	{"time-out kills nohup", killed(`nohup sleep 777 >/dev/null 2>&1 & sleep 777`)},
	{"time-out kills stopped processes", killed(`sleep 777 & kill -STOP $!; sh -c 'kill -STOP $$'`)},
	{"time-out kills what ignores signals", killed(`trap '' TERM INT HUP QUIT; (trap '' TERM; sleep 777) & sleep 777`)},
	{"time-out kills what forks for ever", killed(`f() { while :; do (sleep 777 &); done; }; f`)},
	{"time-out kills what re-executes itself", killed("printf 'sh ./f & exit\\n' > f; sh ./f; sleep 777")},
	{"time-out kills who holds the pipes", killed(`sh -c 'setsid sleep 777 & setsid sleep 777 2>&1 & exit'; sleep 777`)},
	{"time-out kills groups of job control", killed(`set -m; sleep 777 & (sleep 777; :) & wait`)},
	{"time-out kills a coproc and substitutions", killed(`coproc sleep 777; cat <(sleep 777) >/dev/null`)},
	{"time-out kills exec", killed(`exec -a 'sleep 777' sleep 777`)},
	{"time-out keeps partial output", Steps{{Run: `echo out; echo err >&2; sleep 9`, Timeout: 0.3, Stdout: "out\n", Stderr: "err\n", Code: 137, Timed: true}, next}},
	{"time-out of a waiting read", Steps{{Run: `mkfifo p; read <p`, Timeout: 0.3, Code: 137, Timed: true}, next}},
	{"time-out while a trap runs", Steps{{Run: `trap 'sleep 9' USR1; kill -USR1 $BASHPID`, Timeout: 0.3, Code: 137, Timed: true}, next}},
	{"time-out of a tenth of a second", Steps{{Run: `sleep 9`, Timeout: 0.1, Code: 137, Timed: true}, {Run: `sleep 0.05; echo in time`, Timeout: 5, Stdout: "in time\n"}}},
}

// killed: the command runs out of time; nothing of it is left, what was there
// before is, and so is the session's state.
func killed(command string) Steps {
	return Steps{
		{Run: count},
		{Run: `sleep 888 & setsid -f sleep 888`, Loose: true},
		{Run: `x=lost; cd /; ` + command, Timeout: 0.5, Code: 137, Timed: true, Loose: true},
		{Run: `count 'sleep 777'; count 'sh ./f'; count 'sleep 888'; [[ $PWD != / ]] && echo $x`, Stdout: "0\n0\n2\nkept\n"},
	}
}

// background: what a command leaves running. It is killed by KILL: a bash that has
// used trap, as the session's does, loses a TERM for a child that has not become
// its program yet.
var background = []Case{
	{"a job does not hold the call", Steps{{Run: `sleep 777 & echo now`, Timeout: 20, Stdout: "now\n"}, {Run: `setsid -f sleep 777; nohup sleep 777 >/dev/null 2>&1 & echo now`, Timeout: 20, Stdout: "now\n"}, next}},
	{"a job never writes into a later result", Steps{{Run: `mkfifo go; (read < go; echo late; echo late >&2; touch written) & echo now`, Stdout: "now\n"}, {Run: `echo > go; wait; echo second`, Stdout: "second\n"}, {Run: `ls written`, Stdout: "written\n"}}},
	{"a job that writes much is not blocked", Steps{{Run: `mkfifo done; (head -c 1000000 /dev/zero; echo ok > done) & :`, Loose: true}, {Run: `cat done`, Stdout: "ok\n"}}},
	{"a job's output within its call", Steps{{Run: `(echo a) & wait; echo b`, Stdout: "a\nb\n"}}},
	{"jobs, fg and bg", Steps{{Run: `sleep 777 & jobs %1 | wc -l; fg`, Stdout: "1\n", Code: 1, Stderr: "no job control"}, {Run: `kill -9 %1; wait %1; echo $?`, Stdout: "137\n", Loose: true}, next}},
	{"disown", Steps{{Run: `sleep 777 & p=$!; disown`}, {Run: `jobs; kill $p && echo there`, Stdout: "there\n"}}},
	{"a job is not a child of the next command", Steps{{Run: `sleep 777 & p=$!`}, {Run: `sleep 9`, Timeout: 0.2, Code: 137, Timed: true}, {Run: `kill $p && echo alive`, Stdout: "alive\n"}}},
	{"a hundred jobs", Steps{{Run: `for i in {1..100}; do sleep 777 & done; jobs | wc -l`, Stdout: "100\n"}, next, {Run: `kill -9 $(jobs -p); wait; echo $?`, Stdout: "0\n", Loose: true}, next}},
	{"wait after a take-over does not hang", Steps{{Run: `exec 9< <(sleep 0.2)`}, {Run: `exit 3`, Code: 3, Notice: replaced}, {Run: `wait; echo ok`, Timeout: 20, Stdout: "ok\n"}}},
	{"wait -n with jobs that end at once", repeat(20, Step{Run: `true & true & wait -n; wait; echo done`, Timeout: 20, Stdout: "done\n", Loose: true})},
	{"a wait that a trap interrupts, then a wait", repeat(10, Step{Run: `trap 'echo alarm' ALRM; (sleep 0.02; kill -ALRM $$) & wait $!; wait; echo done`, Timeout: 20, Stdout: "alarm\ndone\n", Loose: true})},
	{"a job that kills the shell between two calls", Steps{{Run: `y=1; (while [ -e /proc/$BASHPID ]; do [ -e go ] && { kill -9 $$; touch did; exit; }; done) & :`, Loose: true}, {Run: `touch go; until [ -e did ]; do :; done`, Code: 137, Notice: replaced}, {Run: `echo $y`, Stdout: "1\n"}}},
	{"commands run at nice 19", Steps{{Run: `nice`, Stdout: "19\n"}}},
}

func repeat(n int, s Step) (steps Steps) {
	for range n {
		steps = append(steps, s)
	}
	return append(steps, next)
}
