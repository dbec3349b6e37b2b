package differential

// grammar is what scripts are made of. See rule.
var grammar = map[string]rule{}

func init() {
	for _, part := range []map[string]rule{words, expansions, statements, compounds} {
		for name, r := range part {
			grammar[name] = r
		}
	}
}

// words are literals and quotings, with bytes that shells trip over.
var words = map[string]rule{
	"scalar":  {flat: []string{"v0", "v1", "v2", "v3"}},
	"integer": {flat: []string{"n0", "n1", "n2"}},
	"array":   {flat: []string{"a0", "a1", "a2"}},
	"map":     {flat: []string{"m0", "m1"}},
	"export":  {flat: []string{"e0", "e1"}},
	"file":    {flat: []string{"one", "two", "sub/three", "'a b'", "x.txt", "-n", "ü"}},
	"dir":     {flat: []string{"sub", "sub/deep", "sub/..", ".", "nosuch", "-", "'d e'", "~", "./sub", "-P sub"}},
	"key":     {flat: []string{"k", "'a b'", "x", `"]"`, "1"}},
	"literal": {flat: []string{
		"foo", "bar-baz", "42", "-7", "x.y", "''", `""`, "a=b", "%d", `\\`, "é☃", "007", "0x1f", "/usr/lib", "aXbXc", "~", "-e", "-n",
		`'a b'`, `'it"s'`, `"it's"`, `a\ b`, `\$x`, `'$x'`, `"\$x \\ \" \a"`, "'\t'", "'a  b   c'", `'*'`, `"a?[b]"`, `'{a,b}'`, `'!'`, `'#'`, `a#b`,
		`$'tab\there'`, `$'nl\nhere'`, `$'\377\376'`, `$'\303'`, `$'\001\177'`, `$'\'\"\\'`, `$'\u263a'`, `$'a\0b'`, `$'\r'`, `$'\cA'`,
		"'\x01\x02'", "'\x7f'", "\"a\x01b\"", "'a\rb'", "'a\nb'", "\"a\nb\"", "\"a\\\nb\"", "a\\\nb", "\u00a0", "'\u202e'", "$\"loc\"", "'\x1b[31m'", `'\'`, `'a\nb'`,
	}},
	"word": {
		flat: []string{"‹literal›", "‹literal›", "‹literal›‹literal›", "‹quoted›", "‹quoted›", "‹unquoted›"},
		deep: []string{`"$( ‹pipeline› )"`, "$( ‹pipeline› )", "\"`echo bq ${‹scalar›}; (exit ‹status›)`\"", "\"$(\n‹captured›\n)\""},
	},
	"quoted": {flat: []string{
		`"$‹scalar›"`, `"<‹expansion›>"`, `"‹expansion› ‹expansion›"`, `"${‹array›[@]}"`, `"${‹array›[*]}"`, `"$@"`, `"$*"`, `"a${‹array›[@]}b"`,
		`"$((‹arithmetic›))"`, `"${‹map›[‹key›]}"`, `"$#"`, `"$?"`, `"${!‹array›[@]}"`, `"${!‹map›[@]}"`, `"${PWD##*/}"`,
	}},
	"unquoted": {flat: []string{
		"$‹scalar›", "‹expansion›", "${‹array›[@]}", "$((‹arithmetic›))", "{a,b{1..3},c}", "{3..1}", "*", "*.txt", "[ot]*", "sub/*", "?", "nosuch*", "~+", "$*", "{x,‹scalar›}",
	}},
	"words": {flat: []string{"‹word›", "‹word› ‹word›", "‹word› ‹word› ‹word›", "‹quoted› ‹literal›", ""}},
	// What a variable takes in never makes it grow without bound.
	"bounded": {
		flat: []string{
			"‹literal›", "‹literal›", `"${‹scalar›:0:9}‹small›"`, `${‹scalar›:0:9}`, `"${‹array›[1]:0:9}"`, `"${‹map›[‹key›]:0:5}x"`, `"${#‹scalar›}"`,
			`"$((‹arithmetic›))"`, `"${‹scalar›:+set}"`, `"${1:0:9}"`, `"$?"`, `~`, `"${#‹array›[@]}"`,
		},
		deep: []string{`"$(echo ${‹scalar›:0:9} | tr a-z A-Z)"`, "`echo ${‹scalar›:0:9}`", `$(printf '%s,' "${‹scalar›:0:9}" ‹literal›)`, `"$(cat ‹file› | head -c 20)"`, "$(head -c 9 <‹file›)"},
	},
	"elements": {flat: []string{"‹literal› ‹bounded›", "{a..d}", "*", "‹literal›", "", "‹bounded› x'y '", "[k]=v [3]=w", "\"$1\" ‹literal›"}},
}
