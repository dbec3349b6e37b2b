package differential

import "path/filepath"

// shGrammar is what scripts for a plain sh are made of: POSIX, no more, and of
// what goes on from one call to the next only what lasts without a bash:
// working directory, umask and exported variables. Messages of the shell itself
// are not compared: it evaluates a file here and an argument there.
var shGrammar = map[string]rule{
	"variable": {flat: []string{"e0", "e1", "e2", "e3"}},
	"file":     {flat: []string{"one", "two", "sub/three", "'a b'"}},
	"literal":  {flat: []string{"foo", "42", "''", "'a b'", `"it's"`, `'say "hi"'`, `a\ b`, `'$‹variable›'`, "'a\nb'", "'tab\there'", "'\x01\x7f'", "é☃", `"\$x \\"`, "'*'", "x=y", `"$(printf 'a\377\nb\n\n')"`, `'\n'`}},
	"value":    {flat: []string{"‹literal›", "‹literal›", `"$‹variable›"`, `"${‹variable›:-‹literal›}"`, `"${‹variable›%o*}"`, `"${‹variable›#?}"`, `"${#‹variable›}"`, `"$((‹int› * ‹int› + 1))"`, `"$(echo ‹literal› | tr a-z A-Z)"`, `"${PWD##*/}"`, "`echo bq`"}},
	"statement": {flat: []string{
		"echo ‹value›", "printf '[%s]' ‹value› ‹value›", "export ‹variable›=‹value›", "export ‹variable›=‹value›", "e1=‹value›; export e1", "unset ‹variable›", "cd ‹directory› 2>/dev/null", "umask 0‹small›‹small›",
		"{ echo ‹value› > ‹file›; } 2>/dev/null", "{ cat < one; } 2>/dev/null", "mkdir -p sub 'd e'", "read -r e0; export e0; echo \"$e0\"", "cat", "echo ‹value› >&2", "{ x=‹value›; echo \"$x\"; }", "{ f() { echo \"f $1\"; return ‹status›; }; f ‹value›; }",
		"(exit ‹status›)", "false", "! true", "echo a | { read -r x; echo \"<$x>\"; }", "cat <<E\n$‹variable› $((1 + ‹int›)) `echo bq`\nE", "cat <<'E'\n$‹variable›\nE", "cat <<-E\n\ttab\n\tE", "{ set -- ‹value› b; shift; echo \"$# $1\"; }", "eval \"echo \\\"\\$‹variable›\\\"\"",
		"(cd /; export e0=inner; umask 0)", "true & wait \"$!\"; echo \"$?\"", "‹variable›=temp sh -c 'echo \"$‹variable›\"'", "umask", "pwd", "(set -e; false; echo no)", "(trap 'echo bye' EXIT; exit ‹status›)", "{ exec 5>&1; echo five >&5; exec 5>&-; }", "test -d sub", "ls 2>/dev/null",
	}, deep: []string{
		"if test -n \"$‹variable›\"; then\n‹statement›\nelse\n‹statement›\nfi", "for x in a ‹literal›; do\n‹statement›\necho \"$x\"\ndone", "case ‹value› in\n*a*) echo a;;\nfoo|'') ‹statement›\n;;\n*) echo other\nesac", "{\n‹statement›\n‹statement›\n} 2>/dev/null",
		"(\n‹statement›\n‹statement›\n)", "{\n‹new›=0; while test \"$‹new›\" -lt 2; do\n‹statement›\n‹new›=$((‹new› + 1))\ndone\n}", "test ‹value› = ‹value› && ‹statement›",
	}},
	"directory": {flat: []string{"sub", "sub/..", "nosuch", "'d e'", ".", "-P .", "\"$HOME\""}},
}

const shStateDump = `umask
pwd
pwd -P
env | LC_ALL=C sort`

const shLost = `export e0=lost e1=lost; cd /; umask 0; unset e2; `

// GenerateSh returns the script of a seed for the sh in dir.
func GenerateSh(seed uint64, dir string) Script {
	g := newGenerator(seed)
	g.grammar = shGrammar
	s := Script{Seed: seed, Sh: true, Path: dir + ":" + defaultPath, Shell: []string{filepath.Join(dir, "sh"), "-c"}}
	for range 3 + g.IntN(6) {
		var p Part
		if g.IntN(5) == 0 {
			p.Before = []Interruption{g.shInterruption()}
		}
		for range 1 + g.IntN(3) {
			p.Commands = append(p.Commands, g.write("statement"))
		}
		if g.IntN(3) == 0 {
			p.Stdin = g.pick("a b\n", "one\ntwo\n", "no newline")
		}
		s.Parts = append(s.Parts, p)
	}
	s.Parts = append(s.Parts, Part{Commands: []string{shStateDump}})
	return s
}

func (g *generator) shInterruption() Interruption {
	switch g.IntN(5) {
	case 0:
		return Interruption{Command: shLost + "sleep 99", Timeout: 0.03, Status: 137}
	case 1:
		return Interruption{Command: shLost + "echo open >" + gate + "; sleep 99", Cancel: true, Status: 137}
	case 2:
		return Interruption{Command: shLost + "exec false", Status: 1}
	case 3:
		return Interruption{Command: shLost + "kill -9 $$", Status: 137}
	}
	return Interruption{Command: shLost + "exit 7", Status: 7}
}
