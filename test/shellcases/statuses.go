package shellcases

// statuses: exit codes, and ends of the shell.
var statuses = []Case{
	{"false", Steps{{Run: `false`, Code: 1}}},
	{"status of the command before", Steps{{Run: `(exit 7)`, Code: 7}, {Run: `echo $?`, Stdout: "7\n"}, {Run: `false`, Code: 1}, {Run: `echo $?; trap 'echo err' ERR`, Stdout: "1\n"}, {Run: `! true`, Code: 1}, {Run: `echo $?`, Stdout: "1\n"}, {Run: `echo $?`, Stdout: "0\n"}}},
	{"killed by a signal", Steps{{Run: `sh -c 'kill -TERM $$'`, Code: 143, Loose: true}, next}},
	{"exit", Steps{{Run: `x=lost; exit 3`, Code: 3, Notice: replaced}, next}},
	{"exit without status", Steps{{Run: `false; exit`, Code: 1, Notice: replaced}, next}},
	{"exit 256", Steps{{Run: `exit 256`, Notice: replaced}, next}},
	{"exit in a subshell", Steps{{Run: `(exit 4)`, Code: 4}, next}},
	{"set -e", Steps{{Run: `set -e; false; echo no`, Code: 1, Notice: replaced}, next, {Run: `false; echo yes`, Stdout: "yes\n"}}},
	{"set -e persists", Steps{{Run: `set -e`}, {Run: `false; echo no`, Code: 1, Notice: replaced}, {Run: `echo $-`, Stdout: "ehBc\n"}}},
	{"exec replaces the shell", Steps{{Run: `exec true`, Notice: replaced}, next}},
	{"exec of what is not there", Steps{{Run: `exec nosuch`, Code: 127, Stderr: "not found", Notice: replaced}, next}},
	{"return at top level", Steps{{Run: `return 3`, Code: 2, Stderr: "can only"}, next}},
	{"break at top level", Steps{{Run: `break; echo no`, Notice: "break or continue"}, next}},
	{"continue at top level", Steps{{Run: `continue 3; echo no`, Notice: "break or continue"}, next}},
	{"kill -9 of the shell", Steps{{Run: `kill -9 $BASHPID`, Code: 137, Notice: replaced}, next, {Run: `kill -9 $BASHPID`, Code: 137, Notice: replaced}, next}},
	{"kill -9 $$", Steps{{Run: `kill -9 $$`, Code: 137, Notice: replaced}, next}},
	{"kill -TERM of the shell", Steps{{Run: `kill $BASHPID; sleep 9`, Code: 143, Notice: replaced}, next}},
	{"kill -STOP of the shell", Steps{{Run: `kill -STOP $BASHPID`, Timeout: 0.3, Code: 137, Timed: true}, next}},
	{"crash of the shell", Steps{{Run: `kill -SEGV $BASHPID`, Code: 139, Notice: replaced}, next}},
	{"unbound variable with set -u", Steps{{Run: `set -u; echo $nosuch; echo no`, Code: 127, Stderr: "unbound", Notice: replaced}, next}},
	{"error expansion", Steps{{Run: `: ${nosuch:?gone}; echo no`, Code: 127, Stderr: "gone", Notice: replaced}, next}},
	{"endless recursion", Steps{{Run: `f() { f; }; f`, Timeout: 1, Loose: true, Code: AnyCode}, next}},
}
