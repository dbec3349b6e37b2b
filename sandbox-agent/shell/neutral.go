package shell

import (
	"regexp"
	"slices"
	"strings"
)

// plain is a command of bare words: nothing that expands, redirects, assigns
// before the name, or continues.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./+-]+( [A-Za-z0-9_./:,@%+=-]+)*$`)

// Words that plain admits as a name, and that may change the shell's state:
// bash's reserved words and builtins (compgen -bk), without the pure ones. (In
// posix mode pwd -P sets PWD.)
var stateful = strings.Fields(`
	. alias bg bind break builtin caller case cd command compgen complete compopt continue coproc declare dirs
	disown do done elif else enable esac eval exec exit export fc fg fi for function getopts hash help history if in
	jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly return select set shift shopt source
	suspend then time times trap type typeset ulimit umask unalias unset until wait while`)

// neutral returns the name of the program that text calls when the call can't
// change the shell's state, so that the spare from before it is as good after
// it; else "". What the text can't tell, such as a function of that name, the
// loop asks bash.
func neutral(text string) string {
	const longest = 4096
	if len(text) > longest || !plain.MatchString(text) {
		return ""
	}
	name, _, _ := strings.Cut(text, " ")
	if _, found := slices.BinarySearch(stateful, name); found {
		return ""
	}
	return name
}
