package differential

// statements are simple commands.
var statements = map[string]rule{
	"statement": {
		flat: []string{"‹simple›", "‹assignment›", "‹assignment›", "‹simple›", "‹output›", "‹redirected›", "‹input›"},
		deep: []string{"‹compound›", "‹compound›", "‹pipeline›", "‹document›", "‹job›", "‹simple› && ‹simple›", "‹condition› || ‹simple›", "‹function›", "‹call›"},
	},
	"assignment": {flat: []string{
		"‹scalar›=‹bounded›", "‹scalar›=‹bounded›", "‹scalar›+=‹literal›", "‹integer›=‹int›", "declare -i ‹integer›=‹int›+2", "‹integer›+=‹int›", "‹array›=(‹elements›)", "‹array›=(‹elements›)",
		"‹array›+=(‹literal›)", "‹array›[‹small›]=‹bounded›", "declare -A ‹map›=([k]=‹literal› ['a b']=‹literal›)", "‹map›[‹key›]=‹bounded›", "export ‹export›=‹bounded›", "export -n ‹export›",
		"unset ‹scalar›", "unset '‹array›[‹small›]'", "declare -l low=‹bounded›", "declare -u up=‹bounded›", "declare -n ref=‹scalar›", "ref=‹bounded›", "declare -a ‹array›", "declare -x ‹scalar›",
		"printf -v ‹scalar› '%s|%5d' ‹literal› ‹int›", "set -- ‹elements›", "shift 2>/dev/null", "‹scalar›=‹literal› ‹integer›=‹int›", "declare -p ‹scalar› ‹array› ‹map› 2>/dev/null", "typeset ‹scalar›=‹bounded›",
		"declare -gi ‹integer›=7", "( readonly ro=‹bounded›; ro=2; echo no )", "local x=1", "unset -n ref", "IFS=‹literal› read -r ‹scalar› ‹export› <<< 'p q,r'", "declare -t ‹scalar›", "let ‹integer›=‹int›",
		"‹map›+=([z]=‹literal›)", "[[ xay =~ x(.)y ]]", "(( ‹arithmetic› ))", "OPTIND=1; getopts ab:c ‹scalar› -b val", "BASH_ARGV0=bash", "‹new›=$RANDOM; ‹new›=${‹new›:+r}", "RANDOM=‹small›; echo $RANDOM",
	}},
	"simple": {flat: []string{
		"echo ‹words›", "echo ‹words›", "printf '%s\\n' ‹words›", "printf '[%s]' ‹words›", "echo -e ‹literal›", "echo -n ‹words›", "true", "false", ":", "‹call›", "cat ‹file›", "cd ‹dir›", "pwd | sed 's,.*/,,'",
		"(exit ‹status›)", "echo ‹word› >&2", "nosuchcommand ‹literal›", "‹condition›", "sort ‹file›", "umask", "type ‹scalar› 2>/dev/null", "eval 'echo !(one|two)'", "eval 'echo ‹int›; ‹scalar›=ev'", "eval \"echo \\\"\\$‹scalar›\\\"\"",
		"‹export›=temp sh -c 'echo $‹export›'", "‹scalar›=temp ‹call›", "command echo ‹word›", "builtin printf '%q\\n' ‹word›", "ls", "wc -c < ‹file›", "‹control›", "bash -c 'exit ‹status›'",
		"env | grep -c '^e[01]='", "alone", "q0 ‹word›", "q1", "command -v q0 f0 f1 nosuch", "source ./lib 2>/dev/null", "dirs -p | wc -l", "if [[ $(trap -p USR1) ]]; then kill -USR1 $BASHPID; fi", "return 3 2>/dev/null",
		"echo $((1 + $(echo ‹int›)))", "hash -r", "times >/dev/null", "declare -F | grep -v __", "set | grep '^[vn][0-9]='", "test ‹word› = ‹word›", "sh -c 'kill -9 $$'",
	}},
	// None gives a NUL, that of an empty %c for one: in a command substitution bash
	// warns of it at once, before or after what the commands there have to say.
	"output": {flat: []string{
		"printf '%d|%5s|%-5s|%x|%o|%e\\n' ‹int› ‹literal› ‹literal› 255 8 1.5", "printf '%b' 'a\\tb\\n\\0101\\377'", "printf '%q ' ‹words›", "printf '%s' ‹words›", "printf '%*d\\n' 5 ‹int›", "printf '%c%c' x‹literal› é‹literal›",
		"printf '\\377\\001'", "printf '%s\\n' \"${‹array›[@]}\"", "printf '%(%Y)T\\n' 0", "printf '%.2s|%.*s\\n' ‹literal› 1 ‹literal›", "printf '%5.1f\\n' 2.25", "printf %i 0x10", "printf '%d\\n' \"'a\"",
		"echo out; echo err >&2; echo out", "printf 'no newline'", "printf '\\n\\n\\n'", "echo 'D0'; printf 'R1\\nS2\\n'", "declare -p ‹array›", "declare -f f‹small›", "alias", "trap -p", "set +o | head -4", "shopt extglob",
		"printf '%s,' {1..5}", "seq 3", "printf '%s\\n' ‹words› | sort -r", "printf '%q' \"$*\"",
	}},
	"redirected": {flat: []string{
		"echo ‹word› > ‹file›", "echo ‹word› >> ‹file›", "cat < ‹file›", "cat ‹file› nosuch > ‹file›.o 2>&1", "echo ‹word› 2>&1 >&2", "{ echo a; echo b >&2; } 2>&1 | sort", "echo x >| ‹file›", "nosuchcommand 2>/dev/null",
		": >>one; exec 5>>one", "echo ‹word› >&5", "exec 5>&-", ": >>two; exec 6<two", "read -r -u 6 ‹scalar›", "exec 6<&-", "exec 7<<< ‹word›", "read -r ‹scalar› <&7", "mkdir -p sub/deep 'd e'", "rm -f ‹file›", "cat <<< ‹word›",
		"echo both &> ‹file›", "echo ‹word› > sub/‹scalar›", "exec {fd}>>one; echo via >&$fd; exec {fd}>&-; unset fd", "cat < <(echo sub; echo ‹word›)", ": > ‹file›", "echo ‹word› > nosuch/x", "echo 'l=lib; echo in lib' > lib",
		"exec 8>&1; echo to eight >&8; exec 8>&-", "exec >/dev/null; echo unseen", "exec 2>&1; echo err >&2", "tee ‹file› <<< ‹word›", "echo ‹word› > >(cat > proc); wait $!", "ln -sf one link; cat link", "umask 0‹small›2", "umask -S u=rwx,g=rx,o=",
	}},
	"input": {flat: []string{
		"read -r ‹scalar›", "read -r ‹scalar› ‹export›; echo \"$?\"", "cat", "read -d , ‹scalar›", "mapfile -t ‹array›", "read -n 3 ‹scalar›", "read -ra ‹array› <<< ‹word›", "mapfile -t -n 2 ‹array› <<< $'1\\n2\\n3'",
		"while read -r line; do echo \"<$line>\"; done", "head -c 2; cat", "read -r", "read -N 2 ‹scalar› <<< abc", "mapfile -d , < <(printf 'x,y,z')", "readarray -t ‹array› < ‹file›", "IFS=: read -r ‹scalar› ‹export› <<< a:b:c", "wc -l",
	}},
}
