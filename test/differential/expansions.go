package differential

// expansions are those of parameters, and arithmetic.
var expansions = map[string]rule{
	"parameter": {flat: []string{"‹scalar›", "‹scalar›", "‹array›[0]", "‹array›[-1]", "‹map›[k]", "‹export›", "1", "2", "‹array›[‹small›]", "nosuch"}},
	"pattern":   {flat: []string{"a", "*a", "o*", "?", "[a-f]", "[!a-f]", "*", "X", "/", "' '", `"$v0"`, "[[:upper:]]", "[[:space:]]", `\*`}},
	// Where these are patterns without extglob too.
	"extended": {flat: []string{"‹pattern›", "@(foo|bar)", "+(o)", "!(a*)", "*(x)?(y)"}},
	// What may stand within ${} within double quotes.
	"default": {flat: []string{"foo", "x y", "a*", `\\$x`, "é☃", "'a'", "~", "$v1", "$((1+1))", "", `\\}`, "a\nb"}},
	"expansion": {flat: []string{
		"${‹parameter›}", "${‹parameter›-‹default›}", "${‹parameter›:-‹default›}", "${‹scalar›:=‹default›}", "${‹parameter›:+‹default›}", "${‹parameter›+set}",
		"${#‹parameter›}", "${‹parameter›#‹pattern›}", "${‹parameter›##‹extended›}", "${‹parameter›%‹pattern›}", "${‹parameter›%%‹pattern›}",
		"${‹parameter›/‹pattern›/-}", "${‹parameter›//‹pattern›/<&>}", "${‹parameter›/#‹pattern›/^}", "${‹parameter›/%‹pattern›/\\$}", "${‹parameter›//‹pattern›}",
		"${‹parameter›^}", "${‹parameter›^^}", "${‹parameter›,}", "${‹parameter›,,}", "${‹parameter›~~}", "${‹parameter›^^[aeiou]}",
		"${‹parameter›:1}", "${‹parameter›:‹small›:2}", "${‹parameter›: -2}", "${‹parameter›@Q}", "${‹parameter›@E}", "${‹parameter›@A}", "${‹parameter›@U}",
		"${‹parameter›@a}", "${!e@}", "${!v*}", "${‹array›[@]:1:2}", "${‹array›[@]/#/p}", "${‹array›[@]^^}", "${‹array›[@]@Q}", "${#‹array›[@]}", "${ref}",
		"${‹array›[@]@A}", "${‹map›[@]@K}", "${@:2}", "${@: -1}", "${*:1:1}", "${BASH_REMATCH[1]}", "${DIRSTACK[1]+two}", "$-", "${REPLY}", "${MAPFILE[1]}", "$OPTIND$OPTARG",
	}},
	"arithmetic": {
		flat: []string{
			"‹int›", "‹integer›", "‹int› + ‹integer›", "‹integer› * ‹int›", "‹integer›++", "--‹integer›", "‹integer› += ‹int›", "‹integer› <<= 1, ‹integer› & 0xff", "16#fF ^ ‹int›",
			"‹integer› % 7", "‹int› ** 2", "‹integer› ? ‹int› : 9", "!‹integer›", "~‹int›", "‹int› < ‹integer› || ‹int› == ‹int›", "2#101 | 010", "‹array›[‹small›] + 1", "‹integer› = 5, ‹integer› / 2",
			"-‹integer› - -3", "(‹int› , ‹int›)", "‹integer› >> 1", "${#‹scalar›} * 2", "$‹integer› + 1", "36#z", "‹integer› & 1 && ‹int›",
		},
		deep: []string{"(‹arithmetic›) + (‹arithmetic›)", "(‹arithmetic›) ? (‹arithmetic›) : 0"},
	},
	"condition": {flat: []string{
		`[[ ‹quoted› == ‹extended› ]]`, `[[ $‹scalar› < ‹literal› ]]`, `[[ -n $‹scalar› && ! -z $‹export› ]]`, `[[ $‹scalar› =~ ^(.)(.*)$ ]]`, `[[ $‹scalar› =~ [0-9]+ || -f ‹file› ]]`, `[[ -v ‹scalar› ]]`,
		`[ "$‹scalar›" = ‹literal› ]`, `[ "$‹integer›" -gt ‹int› ]`, `test -d sub`, `(( ‹arithmetic› ))`, `let '‹arithmetic›'`, `true`, `false`, `! true`, `[[ -o pipefail ]]`, `[[ $‹integer› -le ‹int› ]]`,
		`[[ ( a == b || $‹scalar› ) && x ]]`, `grep -q o ‹file› 2>/dev/null`, `[[ -R ref ]]`, `shopt -q extglob`, `read -r ‹scalar› <<< ‹literal›`, `[ -e ‹file› -a -s ‹file› ]`,
	}},
}
