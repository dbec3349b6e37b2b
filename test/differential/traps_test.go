package differential

import (
	"testing"
)

// failures are commands that fail, each in a way of its own. Those of passed are
// ones that set -e lets pass.
var (
	failures = []string{
		"false", "(exit 3)", "f", "( false )", "eval false", "eval 'false; true'", "command false", "false | true", "true | false", "source ./fails", "source ./returns", "source ./nosuch", "! true", "! false",
		"return 3", "[[ a == b ]]", "(( 0 ))", "{ false; true; }", "if false; then :; else false; fi", "x=$(false)", "nosuchcommand", "cd nosuch", "f | cat", "g", "echo \"$?\"; (exit 5)",
	}
	passed = []string{
		"[ a = b ] && c", "false || false && true", "! true", "if false; then :; fi", "while false; do :; done", "until true; do :; done", "false || :", "f || :", "! g", "eval false || :", "source ./fails || :",
		"! source ./fails", "if source ./fails; then :; fi", "h || true", "false && true; echo on", "{ false && true; }; echo on", "true | false | true || :", "(false) || echo \"$?\"", "set +e; false; set -e", "echo \"$?\"; false && true",
		"trap 'echo again' ERR; false && true; trap 'echo err' ERR", "x=$(false) || echo no", "[[ a == b ]] && c", "(( 0 )) && c",
	}
	prepared = "f() { false; }; g() { f; return 4; }; h() { false; echo no; }; echo false > fails; echo 'return 3' > returns; echo 'echo in; false; echo out' > lib"
	// A DEBUG trap runs between commands too: this one tells of the commands alone.
	traps = []string{"trap 'echo err' ERR", "trap 'n0=$((n0 + 1))' ERR", "trap 'echo \"err $?\"' ERR; trap 'echo ret' RETURN",
		"trap 'case $BASH_COMMAND in [fgh]|false|source*|return*) echo \"debug $BASH_COMMAND\";; esac' DEBUG; trap 'echo err' ERR"}
	settings = []string{"", "set -E", "set -T", "set -ET", "shopt -s nocasematch", "set -E; shopt -s nocasematch", "set -T; shopt -s nocasematch", "set -E; shopt -s lastpipe", "set -o pipefail", "set -E; shopt -s inherit_errexit"}
)

// TestTrapsAreAPlainBashs: a trap runs as often as in a plain bash, whatever
// fails, and set -e lets pass what it lets pass there.
func TestTrapsAreAPlainBashs(t *testing.T) {
	t.Parallel()
	r := Runner{Dir: t.TempDir()}
	var scripts []Script
	for _, trap := range traps {
		for _, setting := range settings {
			scripts = append(scripts, fixed(prepared, trap, setting, failures), fixed(prepared, trap, setting+"\nset -e", passed))
		}
	}
	r.check(t, 0, len(scripts), func(i uint64) Script { return scripts[i] })
}

// fixed is a script of a part for each of before, and for each command.
func fixed(prepare, trap, setting string, commands []string) Script {
	s := Script{Path: defaultPath, Shell: []string{"bash", "--norc", "--noprofile", "-c"}}
	for _, c := range append([]string{prepare, trap, setting}, commands...) {
		if c != "" {
			s.Parts = append(s.Parts, Part{Commands: []string{c}})
		}
	}
	s.Parts = append(s.Parts, Part{Commands: []string{stateDump}})
	return s
}
