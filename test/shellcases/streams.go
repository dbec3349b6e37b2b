package shellcases

import "strings"

// streams: what goes in and comes out.
var streams = []Case{
	{"no final newline", Steps{{Run: `printf foo`, Stdout: "foo"}, next}},
	{"trailing newlines", Steps{{Run: `printf 'a\n\n\n'`, Stdout: "a\n\n\n"}}},
	{"leading white space", Steps{{Run: "  \n\t echo '  a'", Stdout: "  a\n"}}},
	{"streams apart", Steps{{Run: `echo out; echo err >&2`, Stdout: "out\n", Stderr: "err\n"}}},
	{"NUL bytes", Steps{{Run: `printf 'a\0b'`, Stdout: "a\x00b"}}},
	{"invalid UTF-8", Steps{{Run: `printf 'a\377\376b\303'`, Stdout: "a\uFFFD\uFFFDb\uFFFD"}}},
	{"control bytes", Steps{{Run: `printf '\001\033[31m\r\n'`, Stdout: "\x01\x1b[31m\r\n"}}},
	{"protocol look-alikes", Steps{{Run: `printf 'D0\nR1\nS1\n'; printf 'D7\n' >&2`, Stdout: "D0\nR1\nS1\n", Stderr: "D7\n"}, next}},
	{"stdin is empty", Steps{{Run: `cat; read a; echo "got $?"`, Stdout: "got 1\n"}}},
	{"stdin is given", Steps{{Run: `cat`, Stdin: "a\nb", Stdout: "a\nb"}, {Run: `cat`}}},
	{"stdin is not read", Steps{{Run: `echo hi`, Stdin: strings.Repeat("x", 200_000), Stdout: "hi\n"}, {Run: `cat`}, next}},
	{"stdin is larger than a pipe", Steps{{Run: `wc -c`, Stdin: strings.Repeat("x", 500_000), Stdout: "500000\n"}}},
	{"exec redirects its call", Steps{{Run: `exec >/dev/null; echo lost`}, {Run: `echo back`, Stdout: "back\n"}, next}},
	{"exec redirects stderr", Steps{{Run: `exec 2>&1; echo e >&2`, Stdout: "e\n"}, {Run: `echo e >&2`, Stderr: "e\n"}}},
	{"stdout is closed", Steps{{Run: `exec 1>&-; echo x`, Code: 1, Stderr: "write error"}, {Run: `echo ok`, Stdout: "ok\n"}, next}},
	{"protocol descriptors unseen", Steps{{Run: `ls /proc/self/fd | tr '\n' ' '`, Stdout: "0 1 2 3 "}}},
	{"environment without agent's", Steps{{Run: `env | grep -c BERTH`, Stdout: "0\n", Code: 1}}},
	{"reopened stdout", Steps{{Run: `echo a > /dev/stdout; echo b >> /proc/self/fd/1; echo c > /dev/fd/2`, Stdout: "a\nb\n", Stderr: "c\n"}}},
	{"stdout is not a terminal", Steps{{Run: `[ -t 1 ] || echo no`, Stdout: "no\n"}}},
}
