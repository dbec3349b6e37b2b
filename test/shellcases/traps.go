package shellcases

import "github.com/berth-dev/berth/sandbox-agent/client"

// traps: a trap, and set -e, see the commands as in a plain bash: test/differential
// compares many more.
var traps = []Case{
	{"set -e and a last status that it lets pass", Steps{{Run: `set -e`}, {Run: `[ a = b ] && c`, Code: 1}, {Run: `echo "$? $-"; false && c`, Stdout: "1 ehBc\n", Code: 1}, {Run: `! true`, Code: 1}, next, {Run: `x=lost; false`, Code: 1, Notice: replaced}, {Run: `[ a = b ] && c`, Code: 1}, next}},
	{"set -e and a status before it", Steps{{Run: `set -e; false || (exit 7) && :`, Code: 7}, {Run: `echo $?; false && :`, Stdout: "7\n", Code: 1}, {Run: `echo $?`, Stdout: "1\n"}, next}},
	{"set -e in a directory, with variables", Steps{{Run: `set -e; trap 'echo err' ERR`}, {Run: `[ a = b ] && c; pwd; echo $y; [ a = b ] && c`, Cwd: "/usr", Env: []client.EnvVar{{Name: "y", Value: "a b"}}, Stdout: "/usr\na b\n", Code: 1}, {Run: `echo no`, Cwd: "nosuch", Code: 1, Stderr: "line 1: cd: nosuch: No such file"}, {Run: `pwd`, Stdout: "/usr\n"}, {Run: `(exit 4)`, Cwd: "/", Code: 4, Stdout: "err\n", Notice: replaced}, {Run: `pwd`, Stdout: "/usr\n"}}},
	{"set -e, and set +e within", Steps{{Run: `set -e`}, {Run: `set +e; false`, Code: 1}, {Run: `false; echo $-`, Stdout: "hBc\n"}, next}},
	{"set -e and a DEBUG trap", Steps{{Run: `trap 'case $BASH_COMMAND in mine*) echo debug;; esac' DEBUG; mine() { :; }; set -e`}, {Run: `mine; false && c`, Stdout: "debug\n", Code: 1}, {Run: `trap -p; trap - DEBUG; mine`, Stdout: "trap -- 'case $BASH_COMMAND in mine*) echo debug;; esac' DEBUG\n"}, {Run: `trap -p; false && c`, Code: 1}, next}},
	{"set -e and what it prints with set -T", Steps{{Run: `trap 'echo touch dropped' DEBUG; set -eT`, Loose: true}, {Run: `trap - DEBUG; ls`, Code: 0, Loose: true}, {Run: `ls`}, next}},
	{"what a DEBUG trap prints is no command for the spare", Steps{{Run: `trap 'echo "touch dropped"' DEBUG; set -T`, Loose: true}, {Run: `exit 3`, Code: 3, Loose: true}, {Run: `trap - DEBUG`, Loose: true}, {Run: `ls`}, next}},
	{"an ERR trap runs once for a source that fails", Steps{{Run: `trap 'n0=$((n0 + 1))' ERR`}, {Run: `set -E`}, {Run: `shopt -s nocasematch`}, {Run: `source ./lib 2>/dev/null`, Code: 1}, {Run: `echo $n0`, Stdout: "1\n"}, next}}, // seed 305252123363
	{"an ERR trap runs once for a command in a directory", Steps{{Run: `trap 'echo err' ERR`}, {Run: `false`, Cwd: "/", Code: 1, Stdout: "err\n"}, {Run: `! true`, Cwd: "/", Code: 1}, next}},
	{"an ERR trap and what fails", failing("", "err\n", "err\n")},
	{"an ERR trap and what fails, with set -E", failing("set -E", "err\nerr\n", "err\n")},
	{"an ERR trap and what fails, with set -T", failing("set -T", "err\n", "err\n")},
	{"an ERR trap and what fails, with set -E and nocasematch", failing("set -E; shopt -s nocasematch", "err\nerr\n", "err\n")},
}

// failing: what an ERR trap prints for a function that fails, and for the rest.
func failing(setting, function, rest string) (steps Steps) {
	steps = Steps{{Run: `f() { false; }; echo 'return 3' > lib; trap 'echo err' ERR; ` + setting}, {Run: `f`, Code: 1, Stdout: function}}
	for _, c := range []string{`false`, `(exit 1)`, `eval '(exit 1)' || false`, `x=$(false)`, `source ./nosuch 2>/dev/null`} {
		steps = append(steps, Step{Run: c, Code: 1, Stdout: rest})
	}
	return append(steps, Step{Run: `source ./lib`, Code: 3, Stdout: rest})
}
