package shellcases

import "strings"

// syntax: source that bash takes apart, or can't.
var syntax = []Case{
	{"blank command", Steps{{Run: "  "}, {Run: "\n"}, {Run: "# comment"}, next}},
	{"unterminated single quote", Steps{{Run: `echo 'abc`, Code: 2, Stderr: "unexpected EOF"}, next}},
	{"unterminated double quote", Steps{{Run: `echo "abc`, Code: 2, Stderr: "unexpected EOF"}, next}},
	{"unterminated substitution", Steps{{Run: `echo $(`, Code: 2, Loose: true}, next}},
	{"unterminated backquote", Steps{{Run: "echo `", Code: 2, Loose: true}, next}},
	{"unterminated group", Steps{{Run: `{ echo a`, Code: 2, Stderr: "syntax error"}, next}},
	{"stray brace", Steps{{Run: `}`, Code: 2, Stderr: "syntax error"}, next}},
	{"stray done", Steps{{Run: `done; done`, Code: 2, Stderr: "syntax error"}, next}},
	{"stray paren", Steps{{Run: `)`, Code: 2, Stderr: "syntax error"}, next}},
	{"stray double semicolon", Steps{{Run: `;;`, Code: 2, Stderr: "syntax error"}, next}},
	{"here-document", Steps{{Run: "cat <<EOF\na $x\nEOF", Stdout: "a kept\n"}, next}},
	{"here-document unterminated", Steps{{Run: "cat <<EOF\nhi", Stdout: "hi\n", Stderr: "warning"}, next}},
	{"trailing backslash", Steps{{Run: `echo a\`, Stdout: "a\\\n"}, next}},
	{"error names line one", Steps{{Run: "nosuchcommand", Code: 127, Stderr: "bash: line 1: nosuchcommand"}}},
	{"error names line two", Steps{{Run: "true\nnosuchcommand", Code: 127, Stderr: "line 2: nosuchcommand"}}},
	{"large command", Steps{{Run: "true '" + strings.Repeat("y", 900_000) + "'; echo ok", Stdout: "ok\n"}, next}},
}
