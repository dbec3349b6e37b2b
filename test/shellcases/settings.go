package shellcases

import (
	"fmt"
	"strings"
)

// settings: each option, builtin and variable that a command may change for
// whoever shares its shell.
var settings = []Case{
	{"each shopt is set, kept and unset", toggles("shopt -q %[1]s && a=-u || a=-s; shopt $a %[1]s", "shopt -q %[1]s && b=-s || b=-u; [ $a = $b ] && echo kept", "[ $a = -s ] && a=-u || a=-s; shopt $a %[1]s", strings.Fields(`
		autocd assoc_expand_once cdable_vars cdspell checkhash checkjobs checkwinsize cmdhist
		complete_fullquote direxpand dirspell dotglob execfail expand_aliases extdebug extglob extquote failglob force_fignore globasciiranges globstar
		gnu_errfmt histappend histreedit histverify hostcomplete huponexit inherit_errexit interactive_comments lastpipe lithist localvar_inherit localvar_unset
		mailwarn no_empty_cmd_completion nocaseglob nocasematch nullglob progcomp progcomp_alias promptvars shift_verbose sourcepath xpg_echo`)...)},
	{"each set -o is set, kept and unset", toggles("[ -o %[1]s ] && a=+o || a=-o; set $a %[1]s", "[ -o %[1]s ] && b=-o || b=+o; [ $a = $b ] && echo kept", "[ $a = -o ] && a=+o || a=-o; set $a %[1]s", strings.Fields(`
		allexport braceexpand emacs errtrace functrace hashall histexpand history ignoreeof interactive-comments keyword monitor noclobber
		noglob nolog notify nounset physical pipefail posix vi verbose xtrace`)...)},
	{"compatibility levels", toggles("shopt -s %[1]s", ":", "shopt -u %[1]s; BASH_COMPAT=", "compat31", "compat32", "compat40", "compat41", "compat42", "compat43", "compat44")},
	{"each set of options, after the shell is replaced", replacedWith("set -u", "set -f", "set -C", "set -a", "set -E", "set -T", "set -b", "set -h", "set -k", "set -m", "set -p", "set -B", "set -H", "set -P", "set -o pipefail", "set -o posix", "set -o emacs", "set -o history", "shopt -s nullglob failglob nocasematch", "shopt -s extdebug", "shopt -s localvar_inherit localvar_unset inherit_errexit", "shopt -s expand_aliases xpg_echo lastpipe")},
	{"the agent's variables unset with set -u", Steps{{Run: `set -u; unset __berth __berth_own __berth_loop`}, next, {Run: `exit 1`, Code: 1, Notice: replaced}, next}},
	{"set -o onecmd", Steps{{Run: `set -t`, Code: AnyCode, Loose: true}, {Run: `echo "next $x"`, Stdout: "next kept\n", Code: AnyCode, Loose: true}, next}},
	{"allexport exports nothing of the agent's", Steps{{Run: `set -a; y=1`}, {Run: `ls /dev/null`, Stdout: "/dev/null\n"}, {Run: `exit 1`, Code: 1, Notice: replaced}, {Run: `env | grep -c __berth; env | grep ^y`, Stdout: "0\ny=1\n"}}},
	{"each builtin as a function", toggles("%[1]s() { return 9; }", ":", "unset -f %[1]s", "read", "mapfile", "printf", "exec", "eval", "trap", "kill", "exit", "set", "declare", "alias", "compgen", "disown", "export", "umask", "pwd", "test", "return", "break", "enable", "type", "command", "shopt", "source", "local", "true", "false", "wait", "cd", "compopt")},
	{"each builtin disabled", toggles("enable -n %[1]s", ":", "enable %[1]s", "declare", "alias", "compgen", "export", "umask", "pwd", "test", "return", "type", "command", "shopt", "source", "local", "true", "false", "wait", "cd", "[", "let", "hash", "jobs")},
	{"builtins that the loop needs, disabled", disabled("builtin", "printf", "read", "mapfile", "kill", "exit", "eval", "set", "trap", "disown", "exec", ":", "compgen", "declare", "alias", "enable", "unset", "shopt")},
	{"every builtin disabled", Steps{{Run: `for b in $(compgen -b); do enable -n $b 2>/dev/null; done`, Code: AnyCode, Loose: true}, {Run: `echo "next $x"`, Stdout: "next kept\n", Loose: true}, next}},
	{"the agent's variables overwritten", Steps{{Run: `__berth=5; __berth_own=7; __berth_loop='exit 1'`}, next, {Run: `exit 3`, Code: 3, Notice: replaced}, next}},
	{"the agent's variables readonly", tampered(`readonly __berth`, `readonly __berth_own`, `readonly __berth_loop`)},
	{"the agent's variables of another kind", tampered(`declare -i __berth`, `declare -u __berth_own`, `unset __berth; declare -A __berth`, `unset __berth_own; declare -A __berth_own`, `unset __berth_loop; declare -A __berth_loop`)},
	{"PATH empty", Steps{{Run: `PATH=`}, {Run: `ls`, Code: 127, Stderr: "No such file"}, next, {Run: `exit 1`, Code: 1, Notice: replaced}, {Run: `PATH=/bin:/usr/bin; ls /dev/null`, Stdout: "/dev/null\n"}}},
	{"PATH, HOME, PWD, IFS unset", Steps{{Run: `unset PATH HOME PWD OLDPWD IFS SHLVL _ OPTIND`}, {Run: `cd`, Code: 1, Stderr: "HOME not set"}, next, {Run: `exit 1`, Code: 1, Notice: replaced}, next}},
	{"IFS of digits, of letters, of nothing", Steps{{Run: `IFS=0123456789`}, next, {Run: `IFS=abcdefghijklmnopqrstuvwxyz/`}, {Run: `exit 1`, Code: 1, Notice: replaced}, next, {Run: `IFS=`}, next}},
	{"locale changes", Steps{{Run: `LC_ALL=C; y=é; echo ${#y}`, Stdout: "2\n"}, {Run: `LC_ALL=C.UTF-8 2>/dev/null; echo ${#y}`, Stdout: "1\n"}, {Run: `exit 1`, Code: 1, Notice: replaced}, {Run: `echo ${#y}; printf '\xff'`, Stdout: "1\n\uFFFD"}, {Run: `LANG=nosuch LC_ALL=nosuch; echo ok`, Stdout: "ok\n", Loose: true}, next}},
	{"BASH_ENV is for programs", Steps{{Run: `echo 'echo from env' > env; export BASH_ENV=$PWD/env`}, {Run: `bash -c 'echo in'`, Stdout: "from env\nin\n"}, next, {Run: `exit 1`, Code: 1, Notice: replaced}, next}},
	{"prompts are not shown", Steps{{Run: `PROMPT_COMMAND='echo pc'; PS1='$(echo one)'; PS2=two`}, next, next}},
	{"PS4 with a command", Steps{{Run: `PS4='$(echo tick >> f)+ '; set -x`, Loose: true}, {Run: `true`, Loose: true}, {Run: `set +x; [ -s f ] && echo ran`, Stdout: "ran\n", Loose: true}, next}},
	{"POSIXLY_CORRECT", Steps{{Run: `POSIXLY_CORRECT=1`}, next, {Run: `}`, Code: 2, Stderr: "syntax error", Notice: replaced}, next, {Run: `set +o posix`}, next}},
	{"noclobber", Steps{{Run: `set -C; echo a > f; echo b > f`, Code: 1, Stderr: "cannot overwrite"}, {Run: `echo c >| f; cat f`, Stdout: "c\n"}, next}},
	{"extdebug with a DEBUG trap that skips every command", Steps{{Run: `shopt -s extdebug; trap false DEBUG`, Timeout: 0.5, Code: 137, Timed: true}, next}},
	{"RETURN trap", Steps{{Run: `trap 'echo ret' RETURN; set -T; f() { echo in; }`}, {Run: `f`, Stdout: "in\nret\n"}, {Run: `f | cat`, Stdout: "in\nret\n"}, {Run: `trap - RETURN`}, next}},
	{"FUNCNEST", Steps{{Run: `FUNCNEST=2; f() { f; }; f`, Code: 1, Stderr: "maximum function nesting"}, next, {Run: `FUNCNEST=1`}, next, {Run: `exit 1`, Code: 1, Notice: replaced}, next}},
	{"TMOUT", Steps{{Run: `TMOUT=1`}, {Run: `sleep 1.2`}, next, {Run: `exit 1`, Code: 1, Notice: replaced}, next}},
	{"GLOBIGNORE, HISTFILE, ENV", Steps{{Run: `GLOBIGNORE='*'; HISTFILE=h; ENV=e; set -o history`}, next, {Run: `exit 1`, Code: 1, Notice: replaced}, next, {Run: `ls`}}},
	{"a restricted shell of its own", Steps{{Run: `bash -rc 'cd /'`, Code: 1, Stderr: "restricted"}, next}},
}

// toggles: for each name a change, a call, whether the change is still there,
// and the way back.
func toggles(change, test, back string, names ...string) (steps Steps) {
	for _, name := range names {
		kept := Step{Run: fmt.Sprintf(test, name), Loose: true}
		if strings.Contains(test, "kept") {
			kept.Stdout = "kept\n"
		}
		if !strings.Contains(test, "%") {
			kept = next
		}
		steps = append(steps,
			Step{Run: fmt.Sprintf(change, name), Code: AnyCode, Loose: true},
			Step{Run: `echo "next $x"`, Stdout: "next kept\n", Loose: true}, kept,
			Step{Run: fmt.Sprintf(back, name), Code: AnyCode, Loose: true})
	}
	return append(steps, next)
}

// disabled: whether the shell is replaced or not, the next call works.
func disabled(builtins ...string) (steps Steps) {
	for _, b := range builtins {
		steps = append(steps, Step{Run: "enable -n " + b, Code: AnyCode, Loose: true}, Step{Run: `echo "next $x"`, Stdout: "next kept\n", Loose: true},
			Step{Run: "enable " + b, Code: AnyCode, Loose: true})
	}
	return append(steps, next)
}

// tampered: what breaks the loop is undone, with a notice.
func tampered(commands ...string) (steps Steps) {
	for _, c := range commands {
		steps = append(steps, Step{Run: c, Code: AnyCode, Loose: true}, Step{Run: `echo "next $x"`, Stdout: "next kept\n", Loose: true}, next, Step{Run: `exit 1`, Code: 1, Notice: replaced}, next)
	}
	return steps
}

// replacedWith: the shell is replaced, twice, with each of settings on.
func replacedWith(settings ...string) (steps Steps) {
	const same = `[ "$before" = "$- $(shopt -p; set +o)" ] && echo same`
	for _, s := range settings {
		steps = append(steps, Step{Run: s}, Step{Run: `before="$- $(shopt -p; set +o)"`})
		for range 2 {
			steps = append(steps, Step{Run: `exit 1`, Code: 1, Notice: replaced}, Step{Run: same, Stdout: "same\n"}, next)
		}
		steps = append(steps, Step{Run: strings.NewReplacer("set -", "set +", "shopt -s", "shopt -u").Replace(s)})
	}
	return append(steps, next)
}
