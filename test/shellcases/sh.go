package shellcases

// Sh returns the cases of an image whose only shell is a plain sh. They run in
// one session, in this order.
func Sh() []Case {
	return []Case{
		{"streams apart", Steps{{Run: `printf 'a\n'; printf b >&2`, Stdout: "a\n", Stderr: "b"}}},
		{"cwd, exports and umask persist, nothing else", Steps{
			{Run: `cd /usr; export x=kept; y=lost; umask 027`},
			{Run: `pwd; echo "$x"; echo "[$y]"; umask`, Stdout: "/usr\nkept\n[]\n0027\n"},
		}},
		{"a descriptor 5 of its own costs nothing", Steps{{Run: `export five=kept; exec 5>&1; echo a >&5; exec 5>&-`, Stdout: "a\n"}, {Run: `echo "$five"`, Stdout: "kept\n"}}},
		{"unterminated quote", Steps{{Run: `echo 'abc`, Code: 2, Loose: true}}},
		{"stray brace", Steps{{Run: `}`, Code: 2, Loose: true}}},
		{"exit", Steps{{Run: `exit 3`, Code: 3}}},
		{"set -e", Steps{{Run: `set -e; false; echo no`, Code: 1}}},
		{"exec", Steps{{Run: `exec true`}}},
		{"kill -9 of the shell", Steps{{Run: `kill -9 $$`, Code: 137}}},
		{"here-document", Steps{{Run: "cat <<E\nhi\nE", Stdout: "hi\n"}}},
		{"stdin is given once", Steps{{Run: `cat`, Stdin: "given", Stdout: "given"}, {Run: `cat`}}},
		{"a background job does not hold the call", Steps{{Run: `sleep 777 & echo now`, Stdout: "now\n"}}},
		{"a time-out kills the tree, and no other", Steps{
			{Run: `export x=lost; setsid sleep 778 & sleep 778`, Timeout: 0.5, Code: 137, Timed: true},
			{Run: `for f in /proc/[0-9]*/cmdline; do tr '\0' ' ' <$f; echo; done 2>/dev/null | grep -c '^sleep 77[78]'; echo "$x"`, Stdout: "1\nkept\n"},
		}},
	}
}
