package shellcases

import "strings"

// longest is a command that fills a request's body of 1 MiB, but for the JSON
// around it.
var longest = "true '" + strings.Repeat("y", 1<<20-256) + "'; echo ok"

// source: here-documents, quoting and expansions, each as bash alone has them.
var source = []Case{
	{"command of 1 MiB", Steps{{Run: longest, Stdout: "ok\n"}, next}},
	{"command of a hundred thousand lines", Steps{{Run: strings.Repeat("((n++))\n:\n", 50_000) + "echo $n $LINENO", Stdout: "50000 100001\n"}, next}},
	{"here-document, quoted", Steps{{Run: "cat <<'E'\n$x `y` \\\nE", Stdout: "$x `y` \\\n"}}},
	{"here-document, tabs stripped", Steps{{Run: "cat <<-E\n\ta\n\t\tb $x\n\tE", Stdout: "a\nb kept\n"}}},
	{"here-document with commands", Steps{{Run: "cat <<E\n$(echo E)\n`echo b`\n$((1+1))\nE", Stdout: "E\nb\n2\n"}}},
	{"here-documents, two on a line", Steps{{Run: "cat - /dev/fd/3 <<A 3<<B\na\nA\nb\nB", Stdout: "a\nb\n"}}},
	{"here-document of 1 MB", Steps{{Run: "wc -c <<'E'\n" + strings.Repeat("a", 900_000) + "\nE", Stdout: "900001\n"}, next}},
	{"here-document of protocol look-alikes", Steps{{Run: "cat <<'E'\nD0\nR1\n\"$__berth_loop\"\nE", Stdout: "D0\nR1\n\"$__berth_loop\"\n"}, next}},
	{"here-document whose delimiter is open", Steps{{Run: "cat <<'E", Code: 2, Stderr: "unexpected EOF"}, {Run: "cat <<", Code: 2, Stderr: "syntax error"}, next}},
	{"here-document open in a substitution", Steps{{Run: "echo $(cat <<E\nhi", Code: 2, Loose: true}, next}},
	{"here-document in a function", Steps{{Run: "f() { cat <<E\n$1\nE\n}"}, {Run: "f a; exit 3", Code: 3, Stdout: "a\n", Notice: replaced}, {Run: "f b", Stdout: "b\n"}}},
	{"here-string", Steps{{Run: `cat <<<"$x"; read y <<<'a b'; echo "$y"`, Stdout: "kept\na b\n"}}},
	{"nested quotes", Steps{{Run: `echo "a 'b' \"c\" $(echo "d 'e' $(echo "\"f\"")")" 'g "h"'"'"`, Stdout: "a 'b' \"c\" d 'e' \"f\" g \"h\"'\n"}}},
	{"escapes in quotes", Steps{{Run: `printf %s $'a\n\x41\303\251\'\0ignored'`, Stdout: "a\nAé'"}}},
	{"quotes over lines", Steps{{Run: "echo 'a\n\nb'\necho \"c\nd\"", Stdout: "a\n\nb\nc\nd\n"}}},
	{"names that are patterns", Steps{{Run: `d=$'a\n"\047*?[\\'; mkdir "$d" && cd "$d"`}, {Run: `exit 1`, Code: 1, Notice: replaced}, {Run: `[[ ${PWD##*/} == "$d" ]] && touch "$d" && ls "$d" | wc -l`, Stdout: "2\n"}}},
	{"words of any script", Steps{{Run: `ä=1; echo ünïcödé 日本 🙂`, Code: AnyCode, Stdout: "ünïcödé 日本 🙂\n", Loose: true}, next}},
	{"carriage returns", Steps{{Run: "echo a\r\necho b\r", Stdout: "a\r\nb\r\n"}}},
	{"brace expansion, and without", Steps{{Run: `echo {1..3}{a,b}; set +B`, Stdout: "1a 1b 2a 2b 3a 3b\n"}, {Run: `echo {1,2}`, Stdout: "{1,2}\n"}, next}},
	{"process substitution", Steps{{Run: `cat <(echo a) <(echo b)`, Stdout: "a\nb\n"}, {Run: `exec 9< <(echo later)`}, {Run: `read -u 9 l; echo $l`, Stdout: "later\n"}, next}},
	{"select reads its own input", Steps{{Run: `select v in a b; do echo got $v; break; done`, Stdin: "2\n", Stdout: "got b\n", Stderr: "2) b"}, next}},
	{"case, arithmetic and tests", Steps{{Run: "case $x in k*) echo k;; esac; ((3 > 2)) && echo gt; [[ $x =~ ^(k)(e) ]] && echo ${BASH_REMATCH[2]}", Stdout: "k\ngt\ne\n"}, {Run: "echo ${BASH_REMATCH[1]}", Stdout: "k\n"}}},
	{"arithmetic error", Steps{{Run: "echo $((1/0)); echo no", Code: 1, Stderr: "division by 0"}, next}},
	{"bad substitution", Steps{{Run: "echo ${a b}; echo no", Code: 1, Stderr: "bad substitution"}, next}},
	{"each syntax error", syntaxErrors(
		"if", "if true", "for x", "for x in", "case x in", "case x in a)", "while", "until", "select x", "f(", "f() {", "function", "function f",
		"((", "(( 1", "[[", "[[ a", "[[ a ]", "&", "&&", "| cat", "$(", "${", "${x", `"${`, "`", "<", ">", "2>&", "<<<", "{", "}", "(", ")", "()",
		"elif", "else", "fi", "then", "do", "done", "esac", "in x", "; ;", ";;", `"\`, "$((1+", "coproc", "<(", "cat <(", "a &; b", "case x in a) ;; b", "for ((;;",
	)},
}

// syntaxErrors: each is a failure of its own call.
func syntaxErrors(commands ...string) (steps Steps) {
	for _, c := range commands {
		steps = append(steps, Step{Run: c, Code: AnyCode, Loose: true}, Step{Run: `echo "next $x $?"`, Stdout: "next kept 2\n"})
	}
	return steps
}
