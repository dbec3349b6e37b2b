package shellcases

// Sh returns the cases of an image whose only shell is a plain sh. They run in
// one session, in this order.
func Sh() []Case {
	return []Case{
		{"streams apart", 0, Steps{{Run: `printf 'a\n'; printf b >&2`, Stdout: "a\n", Stderr: "b"}}},
		{"cwd, exports and umask persist, nothing else", 0, Steps{
			{Run: `cd /usr; export x=kept; y=lost; umask 027`},
			{Run: `pwd; echo "$x"; echo "[$y]"; umask`, Stdout: "/usr\nkept\n[]\n0027\n"},
		}},
		{"a descriptor 5 of its own costs nothing", 0, Steps{{Run: `export five=kept; exec 5>&1; echo a >&5; exec 5>&-`, Stdout: "a\n"}, {Run: `echo "$five"`, Stdout: "kept\n"}}},
		{"unterminated quote", 0, Steps{{Run: `echo 'abc`, Code: 2, Loose: true}}},
		{"stray brace", 0, Steps{{Run: `}`, Code: 2, Loose: true}}},
		{"exit", 0, Steps{{Run: `exit 3`, Code: 3}}},
		{"set -e", 0, Steps{{Run: `set -e; false; echo no`, Code: 1}}},
		{"exec", 0, Steps{{Run: `exec true`}}},
		{"kill -9 of the shell", 0, Steps{{Run: `kill -9 $$`, Code: 137}}},
		{"here-document", 0, Steps{{Run: "cat <<E\nhi\nE", Stdout: "hi\n"}}},
		{"stdin is given once", 0, Steps{{Run: `cat`, Stdin: "given", Stdout: "given"}, {Run: `cat`}}},
		{"a background job does not hold the call", 0, Steps{{Run: `sleep 777 & echo now`, Stdout: "now\n"}}},
		{"a time-out kills the tree, and no other", 0, Steps{
			{Run: `export x=lost; setsid sleep 778 & sleep 778`, Timeout: 0.5, Code: 137, Timed: true},
			{Run: `for f in /proc/[0-9]*/cmdline; do tr '\0' ' ' <$f; echo; done 2>/dev/null | grep -c '^sleep 77[78]'; echo "$x"`, Stdout: "1\nkept\n"},
		}},
	}
}
