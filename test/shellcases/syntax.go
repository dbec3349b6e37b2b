package shellcases

import "strings"

// syntax: source that bash takes apart, or can't.
var syntax = []Case{
	{"blank command", 0, Steps{{Run: "  "}, {Run: "\n"}, {Run: "# comment"}, next}},
	{"unterminated single quote", 0, Steps{{Run: `echo 'abc`, Code: 2, Stderr: "unexpected EOF"}, next}},
	{"unterminated double quote", 0, Steps{{Run: `echo "abc`, Code: 2, Stderr: "unexpected EOF"}, next}},
	{"unterminated substitution", 0, Steps{{Run: `echo $(`, Code: 2, Loose: true}, next}},
	{"unterminated backquote", 0, Steps{{Run: "echo `", Code: 2, Loose: true}, next}},
	{"unterminated group", 0, Steps{{Run: `{ echo a`, Code: 2, Stderr: "syntax error"}, next}},
	{"stray brace", 0, Steps{{Run: `}`, Code: 2, Stderr: "syntax error"}, next}},
	{"stray done", 0, Steps{{Run: `done; done`, Code: 2, Stderr: "syntax error"}, next}},
	{"stray paren", 0, Steps{{Run: `)`, Code: 2, Stderr: "syntax error"}, next}},
	{"stray double semicolon", 0, Steps{{Run: `;;`, Code: 2, Stderr: "syntax error"}, next}},
	{"here-document", 0, Steps{{Run: "cat <<EOF\na $x\nEOF", Stdout: "a kept\n"}, next}},
	{"here-document unterminated", 0, Steps{{Run: "cat <<EOF\nhi", Stdout: "hi\n", Stderr: "warning"}, next}},
	{"trailing backslash", 0, Steps{{Run: `echo a\`, Stdout: "a\\\n"}, next}},
	{"error names line one", 0, Steps{{Run: "nosuchcommand", Code: 127, Stderr: "bash: line 1: nosuchcommand"}}},
	{"error names line two", 0, Steps{{Run: "true\nnosuchcommand", Code: 127, Stderr: "line 2: nosuchcommand"}}},
	{"large command", 0, Steps{{Run: "true '" + strings.Repeat("y", 900_000) + "'; echo ok", Stdout: "ok\n"}, next}},
}
