package shellcases

// mereCalls: calls of mere programs, before which no spare is forked.
var mereCalls = []Case{
	{"state, mere calls, time-out", Steps{{Run: `y=1; cd /usr`}, {Run: `true`}, {Run: `ls /dev/null`, Stdout: "/dev/null\n"}, {Run: `y=2; sleep 9`, Timeout: 0.3, Code: 137, Timed: true}, {Run: `echo $y $PWD`, Stdout: "1 /usr\n"}}},
	{"function named as a program", Steps{{Run: `ls() { y=fn; }`}, {Run: `ls`}, {Run: `sleep 9`, Timeout: 0.3, Code: 137, Timed: true}, {Run: `echo $y`, Stdout: "fn\n"}}},
	{"alias named as a program", Steps{{Run: `shopt -s expand_aliases; alias ls='y=al'`}, {Run: `ls`}, {Run: `sleep 9`, Timeout: 0.3, Code: 137, Timed: true}, {Run: `echo $y`, Stdout: "al\n"}}},
	{"function that ends itself", Steps{{Run: `ls() { y=fn; unset -f ls; }`}, {Run: `ls`}, {Run: `sleep 9`, Timeout: 0.3, Code: 137, Timed: true}, {Run: `echo $y`, Stdout: "fn\n"}}},
	{"alias that ends itself", Steps{{Run: `shopt -s expand_aliases; alias ls='y=al; unalias ls'`}, {Run: `ls`}, {Run: `sleep 9`, Timeout: 0.3, Code: 137, Timed: true}, {Run: `echo $y`, Stdout: "al\n"}}},
	{"ERR trap and a mere call", Steps{{Run: `trap 'y=err' ERR`}, {Run: `false`, Code: 1}, {Run: `sleep 9`, Timeout: 0.3, Code: 137, Timed: true}, {Run: `echo $y`, Stdout: "err\n"}}},
	{"traps print nothing", Steps{{Run: `trap 'echo err' ERR; trap 'echo usr' USR1`}, {Run: `true`}, {Run: `ls /dev/null`, Stdout: "/dev/null\n"}, {Run: `echo a`, Stdout: "a\n"}}},
	{"mere call that fails", Steps{{Run: `false`, Code: 1}, {Run: `echo $?`, Stdout: "1\n"}, {Run: `nosuchcommand x`, Code: 127, Stderr: "not found"}, {Run: `echo $?`, Stdout: "127\n"}}},
	{"set -e and a mere call", Steps{{Run: `set -e`}, {Run: `false`, Code: 1, Notice: replaced}, next, {Run: `true`}, next}},
	{"mere call kills the spare", Steps{{Run: `pkill -9 -n -x bash`, Loose: true, Code: AnyCode}, {Run: `true`, Loose: true, Code: AnyCode}, next, {Run: `exit 3`, Code: 3, Notice: replaced}, next}},
	{"background, then mere calls", Steps{{Run: `sleep 777 & p=$!`}, {Run: `true`}, {Run: `sleep 9`, Timeout: 0.3, Code: 137, Timed: true}, {Run: `kill $p; echo $?`, Stdout: "0\n"}}},
}
