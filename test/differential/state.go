package differential

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// stateDump prints what a shell holds at the end. It is a part like any other.
const stateDump = `builtin echo "status $?"
builtin declare -p
builtin declare -f
builtin alias -p
builtin trap -p
builtin shopt -p
builtin set +o
builtin umask
builtin pwd
builtin pwd -P
builtin dirs -l -p
builtin ulimit -a
builtin printf '<%s>\n' "$#" "$@"
for __ref in 3 4 5 6 7 8 9; do if { builtin : >&"$__ref"; } 2>/dev/null; then builtin echo "open $__ref"; fi; done
/usr/bin/env | LC_ALL=C /usr/bin/sort`

// volatile are lines of stateDump that no two shells have in common: clocks,
// pids, the text that the shell was started with, what the command before left
// behind ($_ and PIPESTATUS, which docs/agent.md says don't reach the next
// call), and the reference's own variable. In a plain sh OLDPWD is the agent's
// cd's affair.
var volatile = regexp.MustCompile(`(?m)^(declare -\S+ )?(BASHPID|BASH_EXECUTION_STRING|BASH_COMMAND|EPOCHREALTIME|EPOCHSECONDS|SECONDS|SRANDOM|RANDOM|LINENO|PPID|PIPESTATUS|COPROC_PID|_|__ref)(=.*)?\n`)

var volatileSh = regexp.MustCompile(`(?m)^(OLDPWD|_|__ref)=.*\n`)

// own are the session shell's variables, which docs/agent.md reserves.
var own = regexp.MustCompile(`(?m)^declare -\S+ __berth\w*(=.*)?\n`)

// numbers are line numbers in what bash says of an error: the reference counts
// from the beginning of its script, a session from that of the call. A script may
// have split the words of it. A process
// that a signal ended is named by its pid, and so is the rest of its pipeline.
var numbers = regexp.MustCompile(`(line\s)\d+:?( +\d+ )?|(?m)^ +\d+ (Done|Killed|Terminated|Exit)`)

// normal takes out of a stream what must differ.
func normal(stream string) string {
	return numbers.ReplaceAllString(replaceInvalid(stream), "$1#$3")
}

// replaceInvalid does to each byte that is not UTF-8 what an answer does.
func replaceInvalid(s string) string {
	return string([]rune(s))
}

// files lists what is below dir: kind, mode, and content or target.
func files(dir string) (map[string]string, error) {
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content := ""
		switch {
		case info.Mode().IsRegular():
			var b []byte
			b, err = os.ReadFile(path)
			content = string(b)
		case info.Mode()&fs.ModeSymlink != 0:
			content, err = os.Readlink(path)
		}
		name, _ := filepath.Rel(dir, path) // path is below dir
		all[name] = info.Mode().String() + " " + normal(content)
		return err
	})
	return all, err
}
