package shellcases

// documented: what is not as in a terminal, line by line as docs/agent.md says it.
var documented = []Case{
	{"after a take-over jobs and wait know no older jobs, $! names the last", Steps{{Run: `(sleep 0.2; exit 3) & p=$!; s=$$`}, {Run: `exit 1`, Code: 1, Notice: replaced}, {Run: `jobs; [ $! = $p ] && [ $$ = $s ] && [ $$ != $BASHPID ] && echo same; wait $p; echo $?`, Stdout: "same\n127\n", Stderr: "not a child"}, next}},
	{"after a take-over a coproc is closed, RANDOM anew, execfail without effect", Steps{{Run: `coproc C { cat; }; RANDOM=42; shopt -s execfail`, Loose: true}, {Run: `exit 1`, Code: 1, Notice: replaced}, {Run: `read -t 0.1 -u ${C[0]} l || echo closed`, Stdout: "closed\n", Loose: true}, {Run: `exec nosuch; echo no`, Code: 127, Stderr: "not found", Notice: replaced}, next}},
	{"after a take-over an error that drops a line ends the shell", Steps{{Run: `y=1; : $((1/0)); echo no`, Code: 1, Stderr: "division by 0"}, {Run: `echo $y`, Stdout: "1\n"}, {Run: `exit 1`, Code: 1, Notice: replaced}, {Run: `y=lost; : $((1/0)); echo no`, Code: 1, Stderr: "division by 0", Notice: replaced}, {Run: `y=lost; echo ${a b}`, Code: 1, Stderr: "bad substitution", Notice: replaced}, {Run: `echo $y`, Stdout: "1\n"}, next}},
	{"$_ and PIPESTATUS do not reach the next command", Steps{{Run: `false | true; echo a`, Stdout: "a\n"}, {Run: `echo "${PIPESTATUS[@]}"`, Stdout: "0\n"}, {Run: `echo a b`, Stdout: "a b\n"}, {Run: `[ "$_" = b ] || echo not b`, Stdout: "not b\n"}}},
	{"DEBUG and CHLD traps run between commands too", Steps{{Run: `trap 'n=$((n+1))' DEBUG; trap 'c=$((c+1))' CHLD`}, {Run: `:`}, {Run: `trap - DEBUG CHLD; ((n > 3)) && echo more`, Stdout: "more\n"}, next}},
	{"set -x shows eval, and three lines of the agent at first", Steps{{Run: `set -x`, Stderr: "++ __berth_own[1]=0\n++ unset -f builtin exec\n++ builtin printf 'D%d\\n' 0\n"}, {Run: `echo a`, Stdout: "a\n", Stderr: "++ builtin eval 'echo a'\n+++ echo a\n"}, {Run: `set +x`, Loose: true}, next}},
	{"history records nothing by itself", Steps{{Run: `set -o history`}, {Run: `echo a`, Stdout: "a\n"}, {Run: `history`}}},
	{"an alias of a word of the loop costs the state", Steps{{Run: `shopt -s expand_aliases; alias while='echo broken'`}, next, {Run: `exit 1`, Code: 1, Loose: true}, {Run: `echo ok`, Stdout: "ok\n", Loose: true}, {Run: `echo ok`, Stdout: "ok\n"}}},
	{"a function named exec does not last", Steps{{Run: `exec() { echo mine; }; exec`, Stdout: "mine\n"}, {Run: `declare -F exec || echo gone`, Stdout: "gone\n"}, next}},
	{"in posix mode a syntax error may end the shell", Steps{{Run: `set -o posix; eval ')'`, Code: 2, Stderr: "syntax error", Loose: true}, next}},
}
