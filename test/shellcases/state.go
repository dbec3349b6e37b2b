package shellcases

// state: what persists from one command to the next.
var state = []Case{
	{"variables and cwd", Steps{{Run: `cd /usr; y=1; export z=2; a=(1 "2 3"); declare -A m=([k]=v); readonly r=9; declare -i n=3`}, {Run: `echo "$PWD $y $z ${a[1]} ${m[k]} $r"; n+=4; echo $n; sh -c 'echo $z'`, Stdout: "/usr 1 2 2 3 v 9\n7\n2\n"}}},
	{"functions, aliases, options", Steps{{Run: `f() { echo "f$1"; }; shopt -s expand_aliases extglob; alias q='echo Q'; set -o pipefail; umask 027`}, {Run: `f 1; q; shopt -q extglob && echo on; false | true; echo $?; umask`, Stdout: "f1\nQ\non\n1\n0027\n"}}},
	{"positional parameters", Steps{{Run: `set -- a 'b c'`}, {Run: `echo "$# $2"; shift`, Stdout: "2 b c\n"}, {Run: `echo $#`, Stdout: "1\n"}}},
	{"declare is global", Steps{{Run: `declare v=1; local w=2`, Code: 1, Stderr: "local"}, {Run: `echo $v`, Stdout: "1\n"}}},
	{"REPLY and IFS", Steps{{Run: `read <<< a; IFS=e`}, {Run: `v=hello; echo $REPLY; set -- $v; echo $#`, Stdout: "a\n2\n"}}},
	{"open descriptors", Steps{{Run: `exec 7<<<'seven' 10<<<'ten' {v}<<<'any'`}, {Run: `read -u7 a; read -u10 b; read -u$v c; echo $a $b $c`, Stdout: "seven ten any\n"}}},
	{"a descriptor for writing", Steps{{Run: `exec 5>file; echo a >&5`}, {Run: `echo b >&5; exec 5>&-; cat file`, Stdout: "a\nb\n"}}},
	{"traps", Steps{{Run: `trap 'echo usr' USR1`}, {Run: `kill -USR1 $BASHPID; trap -p`, Stdout: "usr\ntrap -- 'echo usr' SIGUSR1\n"}}},
	{"EXIT trap", Steps{{Run: `trap 'echo bye' EXIT`}, {Run: `exit 2`, Code: 2, Stdout: "bye\n", Notice: replaced}, {Run: `exit 3`, Code: 3, Stdout: "bye\n", Notice: replaced}}},
	{"background jobs", Steps{{Run: `sleep 100 & p=$!`}, {Run: `[ $! = $p ] && jobs -p | grep -cx $p; kill $p; wait $p; echo $?`, Stdout: "1\n143\n", Loose: true}}},
	{"wait without jobs", Steps{{Run: `wait; echo $?`, Stdout: "0\n"}, {Run: `jobs; wait -n; echo $?`, Stdout: "127\n"}}},
	{"wait for two jobs", Steps{{Run: `(exit 3) & a=$!; (exit 4) & b=$!`}, {Run: `wait $a; echo $?; wait $b; echo $?`, Stdout: "3\n4\n"}}},
	{"SIGCHLD trap and children", Steps{{Run: `trap 'n=$((n+1))' CHLD; sleep 0 & wait`}, next}},
	{"INT is not ignored", Steps{{Run: `sh -c 'kill -INT $$; echo survived'`, Code: 130, Loose: true}, {Run: `exit`, Code: 130, Loose: true}, {Run: `sh -c 'kill -INT $$; echo survived'`, Code: 130, Loose: true}}},
	{"BASH_SUBSHELL after take-over", Steps{{Run: `exit 1`, Code: 1, Notice: replaced}, {Run: `echo $BASH_SUBSHELL`, Stdout: "0\n"}}},
	{"cwd is removed", Steps{{Run: `mkdir d; cd d; rmdir ../d`}, {Run: `pwd -P 2>/dev/null || echo gone; cd ..`, Stdout: "gone\n", Loose: true}, next}},
	{"chmod 000 of home", Steps{{Run: `mkdir home && cd home && HOME=$PWD && chmod 000 . && cd /tmp`}, next}},
}
