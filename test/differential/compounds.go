package differential

// compounds are what holds other commands.
var compounds = map[string]rule{
	"pipeline": {
		flat: []string{"‹simple›", "‹output›", "echo ‹words› | cat", "‹output› | tr a-z A-Z"},
		deep: []string{"‹output› | sort | head -2", "! ‹simple› | cat", "‹simple› | { read -r ‹scalar›; echo \"$‹scalar›\"; cat >/dev/null; }", "‹output› |& cat -A", "(exit ‹status›) | (exit ‹status›)", "‹simple› | cat | wc -c", "! ‹simple›",
			"‹output› | while read -r ‹scalar›; do echo \"=$‹scalar›\"; done"},
	},
	"compound": {flat: []string{
		"(\n‹list›\n)", "{\n‹list›\n}", "if ‹condition›\nthen\n‹list›\nelse\n‹list›\nfi", "if ‹condition›; then ‹simple›; elif ‹condition›; then\n‹list›\nfi",
		"for ‹scalar› in ‹words›\ndo\n‹loop›\ndone", "for ((‹new› = 0; ‹new› < 3; ‹new›++))\ndo\n‹loop›\n‹control›\ndone", "‹new›=0; while (( ‹new›++ < 2 ))\ndo\n‹loop›\ndone", "‹new›=3; until (( ‹new›-- <= 1 ))\ndo\n‹loop›\ndone",
		"case ‹word› in\n‹pattern›) ‹simple›;;\n‹pattern›|‹pattern›)\n‹list›\n;;\n*) ‹simple›\nesac", "case $‹scalar› in ‹pattern›) echo one;;& ‹pattern›) echo two;& *) echo rest;; esac", "( set -e; ‹simple›; echo no )", "( ‹list›\nexit ‹status› )",
		"(\ntrap 'echo bye' EXIT\n‹list›\n)", "{\n‹list›\n} > ‹file› 2>&1", "{\n‹list›\n} 2>/dev/null", "(\ncd sub 2>/dev/null\n‹list›\n)", "for ‹scalar›\ndo echo \"$‹scalar›\"; done", "( set -u; echo \"$nosuch\"; echo no ) 2>&1",
		"select ‹scalar› in a b; do echo \"$‹scalar›\"; break; done <<< 2 2>/dev/null", "‹function›\n‹call›", "‹function›", "{ time -p :; } 2>/dev/null", "(\n‹toggle›\n‹list›\n)", "{ coproc { cat; }; echo x >&${COPROC[1]}; read -r ‹scalar› <&${COPROC[0]}; kill $COPROC_PID; wait $COPROC_PID; } 2>/dev/null",
	}},
	"document": {flat: []string{
		"cat <<E\nplain $‹scalar› ‹expansion›\n\\$x \\\\ \\a `echo bq` \"q\" 'q'\nE", "cat <<'E'\n$‹scalar› `no` \\$x\n  kept  \nE", "cat <<-E\n\ttab\n\t\ttwo $((‹arithmetic›))\n\tE", "cat <<A; cat <<'B'\nfirst ‹int›\nA\nsecond $x\nB",
		"cat <<A - <<B\nlost\nA\nkept\nB", "while read -r ‹scalar›; do echo \"($‹scalar›)\"; done <<E\n1\n2 $‹integer›\nE", "read -r ‹scalar› <<E\n‹scalar› is ${‹scalar›:0:5}\nE", "cat <<E | tr a-z A-Z\nto upper \x01 é $(echo sub)\nE",
		"‹scalar›=$(cat <<E\nin substitution\nE\n)", "cat <<\"E O\"\nodd $end\nE O", "cat <<E\nE", "cat <<E >‹file›\ninto file $‹scalar›\n\nE", "mapfile -t ‹array› <<E\nx y\n\nz\nE", "cat 3<<X <&3\nfrom three\nX", "sh <<'E'\necho from sh; exit 3\nE",
	}},
	"job": {flat: []string{
		"(exit ‹status›) & wait $!", "‹scalar›=; { sleep 0; ‹simple›; } & wait; echo \"$?\"", "true & p=$!; wait $p; echo \"$?\"; unset p", "( exit 4 ) & j=$!; ( exit 5 ) & wait $!; echo $?; wait $j; echo $?; unset j", "{ echo from job; } & wait", "read -r < <(echo; exec sleep 9); kill $!; wait $!; echo $?",
		"true & true & wait -n; echo $?; wait", "(trap 'exit 7' TERM; kill -TERM $BASHPID) & wait $!; echo $?", "{ set -m; true & wait; set +m; } 2>/dev/null", "true & [[ $! -gt 1 ]]; echo $?; wait",
	}},
	"toggle": {flat: []string{
		"set -o pipefail", "set +o pipefail", "set -f", "set +f", "set -C", "set +C", "set -a", "set +a", "set -E", "set +E", "set -T", "set +T", "set +B", "set -B", "set -h", "set +h", "set -P", "set +P", "set -k; set +k",
		"shopt -s extglob", "shopt -s nullglob", "shopt -u nullglob", "shopt -s dotglob", "shopt -s globstar; echo **", "shopt -s nocaseglob", "shopt -s nocasematch", "shopt -u nocasematch", "shopt -s expand_aliases", "shopt -s lastpipe",
		"shopt -u lastpipe", "shopt -s xpg_echo", "shopt -u xpg_echo", "shopt -s inherit_errexit", "shopt -s localvar_inherit", "shopt -s shift_verbose", "shopt -u sourcepath", "shopt -s execfail", "shopt -s extquote", "set -u; set +u", "set -e; set +e",
		"IFS=,", "IFS=$' \\t\\n'", "unset IFS", "IFS=", "alias q0='echo Q '", "alias q1='echo one; echo two'", "alias alone='v2=aliased'", "unalias q1 2>/dev/null", "trap 'echo usr' USR1", "trap '' USR1", "trap - USR1", "trap 'echo bye' EXIT", "trap - EXIT",
		"trap 'echo err' ERR", "trap - ERR", "trap 'n0=$((n0 + 1))' ERR", "trap 'echo ret' RETURN", "trap - RETURN", "trap '' INT", "trap - INT", "trap 'echo chld; v3=chld' WINCH", "trap 'echo \"q'\\''s\"' USR2", "TIMEFORMAT=x", "OPTERR=0", "PS4='> '",
	}},
	"top": {flat: []string{"‹statement›", "‹statement›", "‹statement›", "‹statement›", "‹toggle›", "‹toggle›", "printf 'a\\0b\\n\\0'"}},
	// What fails, and what set -e lets pass. Nothing that may be an error of the shell
	// itself, such as a bad subscript: with set -e those end it wherever they stand.
	"exempt": {flat: []string{
		"[ \"$‹scalar›\" = ‹literal› ] && :", "[ a = b ] && echo ‹literal›", "false && echo ‹literal›", "[[ $‹scalar› == ‹literal› ]] && :", "(exit ‹status›) || echo \"$?\"", "(exit ‹status›) && :", "echo \"$?\"; false && :", "(( 0 )) && :", "! true",
		"! (exit ‹status›)", "if ! [[ -f ‹file› ]]; then :; fi", "while false; do :; done", "until true; do :; done", "grep -q o ‹file› 2>/dev/null && :", "e() { false; return ‹status›; }; e && :", "e() { false && return 3; }; e || echo \"$?\"", "{ false; echo on; } || :",
		"( set +e; false; exit ‹status› ) || echo \"$?\"", "true | false || echo \"$?\"", "false | true && :", "source ./lib 2>/dev/null || :", "eval false || :", "eval 'false && :' && :", "true; false && true", "! { false; echo on; }", "echo $- | tr -d c; false && :",
		"for ‹scalar› in a b; do\nfalse && :\ndone || echo \"$?\"", "set +e; false; set -e; [ a = b ] && :", "‹scalar›=$(false) || echo \"$?\"", "false || false && :", "case ‹literal› in a) false;; *) false && :;; esac && :", "cat <<E && false || echo \"$?\"\n‹literal›\nE",
	}},
	// Errors that make bash drop the rest of a line.
	"error": {flat: []string{"echo ${v0:1:-99}; echo no", "echo $((1/0)) || echo no", "v0=set; echo ${a b}; v0=no", "failing() { echo $((1 / 0)); echo no; }\nfailing", "readonly ro=1; ro=2; echo no", "{ echo a; echo $((08)); echo b; } > one"}},
}
