package shellcases

// options: settings that disturb whoever shares a shell with them.
var options = []Case{
	{"xtrace", Steps{{Run: `set -x; echo a`, Stdout: "a\n", Stderr: "+ echo a"}, {Run: `echo b`, Stdout: "b\n", Stderr: "+ echo b"}}},
	{"nounset, noglob, noclobber", Steps{{Run: `set -u; set -f; set -C; IFS=x`}, {Run: `echo ok`, Stdout: "ok\n"}, {Run: `set +C +f +u; unset IFS`}, next}},
	{"posix mode", Steps{{Run: `set -o posix; y=1`}, next, {Run: `echo $y`, Stdout: "1\n"}}},
	{"posix mode and a syntax error", Steps{{Run: `set -o posix`}, {Run: `}`, Code: 2, Loose: true, Notice: replaced}, next}},
	{"noexec", Steps{{Run: `set -n`, Timeout: 0.5, Loose: true, Code: AnyCode, Timed: true}, next}},
	{"DEBUG trap", Steps{{Run: `trap 'n=$((n+1))' DEBUG; set -T`}, next, {Run: `trap - DEBUG`}, next}},
	{"ERR trap of the last command", Steps{{Run: `trap 'echo err' ERR; false`, Code: 1, Stdout: "err\n"}, {Run: `! true`, Code: 1}, next}},
	{"set -e within functions", Steps{{Run: `set -e; f() { false; echo no; }; f; echo no`, Code: 1, Notice: replaced}, next}},
	{"set -e and an exempt failure", Steps{{Run: `set -e; if false; then :; fi; false || echo or`, Stdout: "or\n"}, next}},
	{"ERR trap", Steps{{Run: `trap 'echo err' ERR`}, {Run: `false; true`, Stdout: "err\n"}, next}},
	{"lastpipe", Steps{{Run: `shopt -s lastpipe`}, {Run: `echo v | read y`}, {Run: `echo $y`, Stdout: "v\n"}, next}},
	{"nocasematch, nullglob", Steps{{Run: `shopt -s nocasematch nullglob failglob`}, next}},
	{"restricted", Steps{{Run: `set -r`, Loose: true, Code: AnyCode}, {Run: `echo ok`, Loose: true, Code: AnyCode}, {Run: `true`, Loose: true, Code: AnyCode}}},
	{"monitor mode", Steps{{Run: `set -m; sleep 50 & sleep 0; kill %1; wait; true`, Loose: true}, next}},
	{"compatible with 4.4", Steps{{Run: `BASH_COMPAT=4.4`}, {Run: `echo "next $x"`, Stdout: "next kept\n", Notice: "failed after"}, next}},
	{"functions named as builtins", Steps{{Run: `read() { :; }; eval() { :; }; printf() { :; }; exec() { :; }; trap() { :; }; kill() { :; }`}, next}},
	{"a function named builtin", Steps{{Run: `builtin() { :; }`}, next, next}},
	{"disabled builtins", Steps{{Run: `enable -n read printf mapfile`, Loose: true, Code: AnyCode}, {Run: `echo "next $x"`, Loose: true, Stdout: "next kept\n"}, next}},
	{"loop variables unset", Steps{{Run: `unset __berth __berth_loop`}, next, {Run: `exit 1`, Code: 1, Notice: replaced}, next}},
}
