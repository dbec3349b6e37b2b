// Package uploadcases holds what an uploaded file is called, case by case, so that
// the same table is held against the code that makes the names and against a
// session's gateway.
package uploadcases

import "strings"

// Name is what becomes of a name that is free.
type Name struct{ Case, Raw, Want string }

// x300 is longer than a name may be.
var x300 = strings.Repeat("x", 300)

// Names have each sentence of the rule for names.
var Names = []Name{
	{"plain", "report.csv", "report.csv"},
	{"space around", " \t report.csv\n ", "report.csv"},
	{"space around, Unicode's", "\u00a0report.csv\u3000", "report.csv"},
	{"Windows path", `C:\Users\me\report.csv`, "report.csv"},
	{"Unix path", "/etc/passwd", "passwd"},
	{"mixed path", `a/b\c`, "c"},
	{"path that ends in a slash", "a/b/", "b"},
	{"path upwards", "../../x", "x"},
	{"inner spaces", "a  \t b", "a_b"},
	{"line separators", "a\u2028\u2029b", "a_b"},
	{"no-break and wide spaces", "a\u00a0\u2003\u3000b", "a_b"},
	{"newline", "a\nb", "a_b"},
	{"control characters", "a\x00\x1b\x7f\u0085b", "a_b"},
	{"right-to-left override", "a\u202egpj.exe", "a_gpj.exe"},
	{"other format characters", "a\u200b\ufeff\u2066\U000e0001b", "a_b"},
	{"what Windows refuses", `a<>:"|?*b`, "a_b"},
	{"each of them", `a<b>c:d"e|f?g*h`, "a_b_c_d_e_f_g_h"},
	{"runs beside an underscore", "a _ b", "a___b"},
	{"invalid bytes", "a\xff\xfeb", "a_b"},
	{"a true replacement sign", "a\ufffdb", "a\ufffdb"},
	{"other scripts", "Übung_漢字_отчёт_عربي.txt", "Übung_漢字_отчёт_عربي.txt"},
	{"combining and emoji", "e\u0301😀.txt", "e\u0301😀.txt"},
	{"hidden", ".bashrc", "bashrc"},
	{"many dots", "...a.b...", "a.b"},
	{"two dots in front", "..name", "name"},
	{"dots after space", "a .", "a_"},
	{"255 bytes", x300[:255], x300[:255]},
	{"256 bytes", x300[:256], x300[:255]},
	{"cut on a character's border", x300[:254] + "é", x300[:254]},
	{"a character that just fits", x300[:253] + "é", x300[:253] + "é"},
	{"four bytes wide", x300[:252] + "😀", x300[:252]},
	{"dots at the new end", x300[:253] + "..x", x300[:253]},
	{"underscores", "__", "__"},
	{"device's name longer", "CONSOLE", "CONSOLE"},
	{"device's name as extension", "a.con", "a.con"},
	{"port 0", "com0", "com0"},
	{"port 10", "com10.txt", "com10.txt"},
	{"another superscript", "COM⁴", "COM⁴"},
	{"space after a device", "con .txt", "con_.txt"},
	{"plus and percent", "a+b%20c", "a+b%20c"},
	{"apostrophe, shell's signs", "it's $x;`y`&", "it's_$x;`y`&"},
}

// Refused gives names that no file can have.
func Refused() []string {
	refused := []string{"", " ", "\n", ".", "..", "...", "/", "//", "\\", "../..", "a/..", "_", " _ ", "?", "<>", "\u202e", ". .", "._."}
	for _, device := range []string{"CON", "PRN", "AUX", "NUL", "COM1", "COM9", "LPT1", "LPT9", "COM¹", "COM²", "COM³", "LPT¹", "LPT²", "LPT³"} {
		refused = append(refused, device, strings.ToLower(device), device+".txt", strings.ToLower(device)+".tar.gz", "."+device, "a/"+device+".")
	}
	return refused
}
