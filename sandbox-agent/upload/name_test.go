package upload

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// Each sentence of the rule for names.
func TestName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	for name, c := range map[string]struct{ raw, want string }{
		"plain":                       {"report.csv", "report.csv"},
		"space around":                {" \t report.csv\n ", "report.csv"},
		"space around, Unicode's":     {"\u00a0report.csv\u3000", "report.csv"},
		"Windows path":                {`C:\Users\me\report.csv`, "report.csv"},
		"Unix path":                   {"/etc/passwd", "passwd"},
		"mixed path":                  {`a/b\c`, "c"},
		"path that ends in a slash":   {"a/b/", "b"},
		"path upwards":                {"../../x", "x"},
		"inner spaces":                {"a  \t b", "a_b"},
		"line separators":             {"a\u2028\u2029b", "a_b"},
		"no-break and wide spaces":    {"a\u00a0\u2003\u3000b", "a_b"},
		"newline":                     {"a\nb", "a_b"},
		"control characters":          {"a\x00\x1b\x7f\u0085b", "a_b"},
		"right-to-left override":      {"a\u202egpj.exe", "a_gpj.exe"},
		"other format characters":     {"a\u200b\ufeff\u2066\U000e0001b", "a_b"},
		"what Windows refuses":        {`a<>:"|?*b`, "a_b"},
		"each of them":                {`a<b>c:d"e|f?g*h`, "a_b_c_d_e_f_g_h"},
		"runs beside an underscore":   {"a _ b", "a___b"},
		"invalid bytes":               {"a\xff\xfeb", "a_b"},
		"a true replacement sign":     {"a\ufffdb", "a\ufffdb"},
		"other scripts":               {"Übung_漢字_отчёт_عربي.txt", "Übung_漢字_отчёт_عربي.txt"},
		"combining and emoji":         {"e\u0301😀.txt", "e\u0301😀.txt"},
		"hidden":                      {".bashrc", "bashrc"},
		"many dots":                   {"...a.b...", "a.b"},
		"two dots in front":           {"..name", "name"},
		"dots after space":            {"a .", "a_"},
		"255 bytes":                   {long[:255], long[:255]},
		"256 bytes":                   {long[:256], long[:255]},
		"cut on a character's border": {long[:254] + "é", long[:254]},
		"a character that just fits":  {long[:253] + "é", long[:253] + "é"},
		"four bytes wide":             {long[:252] + "😀", long[:252]},
		"dots at the new end":         {long[:253] + "..x", long[:253]},
		"underscores":                 {"__", "__"},
		"device's name longer":        {"CONSOLE", "CONSOLE"},
		"device's name as extension":  {"a.con", "a.con"},
		"port 0":                      {"com0", "com0"},
		"port 10":                     {"com10.txt", "com10.txt"},
		"another superscript":         {"COM⁴", "COM⁴"},
		"space after a device":        {"con .txt", "con_.txt"},
		"plus and percent":            {"a+b%20c", "a+b%20c"},
		"apostrophe, shell's signs":   {"it's $x;`y`&", "it's_$x;`y`&"},
	} {
		if got, err := Name(c.raw); err != nil || got != c.want {
			t.Errorf("%s: Name(%q) = %q, %v, want %q", name, c.raw, got, err, c.want)
		}
	}
}

func TestNameRefuses(t *testing.T) {
	t.Parallel()
	refused := []string{"", " ", "\n", ".", "..", "...", "/", "//", "\\", "../..", "a/..", "_", " _ ", "?", "<>", "\u202e", ". .", "._."}
	for _, device := range []string{"CON", "PRN", "AUX", "NUL", "COM1", "COM9", "LPT1", "LPT9", "COM¹", "COM²", "COM³", "LPT¹", "LPT²", "LPT³"} {
		refused = append(refused, device, strings.ToLower(device), device+".txt", strings.ToLower(device)+".tar.gz", "."+device, "a/"+device+".")
	}
	for _, raw := range refused {
		if got, err := Name(raw); !errors.Is(err, ErrName) {
			t.Errorf("Name(%q) = %q, %v, want ErrName", raw, got, err)
		}
	}
}

func TestNumbered(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 255)
	for name, c := range map[string]struct {
		name string
		n    int
		want string
	}{
		"first":                      {"a.txt", 1, "a.txt"},
		"second":                     {"a.txt", 2, "a_2.txt"},
		"last":                       {"a.txt", 1000, "a_1000.txt"},
		"no extension":               {"Makefile", 2, "Makefile_2"},
		"extension of two":           {"a.b.txt", 2, "a.b_2.txt"},
		"tar.gz":                     {"a.tar.gz", 2, "a_2.tar.gz"},
		"tar.bz2":                    {"a.tar.bz2", 2, "a_2.tar.bz2"},
		"tar.xz":                     {"a.tar.xz", 2, "a_2.tar.xz"},
		"tar.zst":                    {"a.tar.zst", 2, "a_2.tar.zst"},
		"d.ts":                       {"a.d.ts", 2, "a_2.d.ts"},
		"min.js":                     {"a.min.js", 2, "a_2.min.js"},
		"any case":                   {"a.Tar.GZ", 2, "a_2.Tar.GZ"},
		"nothing before it":          {"tar.gz", 2, "tar_2.gz"},
		"not a compound one":         {"a.tar.txt", 2, "a.tar_2.txt"},
		"numbered already":           {"a_2.txt", 2, "a_2_2.txt"},
		"255 bytes":                  {long, 2, long[:253] + "_2"},
		"255 bytes with extension":   {long[:251] + ".txt", 2, long[:249] + "_2.txt"},
		"255 bytes, compound":        {long[:248] + ".tar.gz", 1000, long[:243] + "_1000.tar.gz"},
		"just fits":                  {long[:249] + ".txt", 2, long[:249] + "_2.txt"},
		"cut on a character":         {long[:247] + "😀.txt", 2, long[:247] + "_2.txt"},
		"extension as long as names": {"a." + long[:253], 2, "a." + long[:251] + "_2"},
		"extension that leaves one":  {"ab." + long[:251], 2, "a_2." + long[:251]},
	} {
		if got := numbered(c.name, c.n); got != c.want {
			t.Errorf("%s: numbered(%q, %d) = %q, want %q", name, c.name, c.n, got, c.want)
		}
	}
}

func FuzzName(f *testing.F) {
	for _, s := range []string{"a.txt", "../x", "CON.txt", " .a. ", "a\u202eb", strings.Repeat("é", 200) + ".tar.gz", "\xff\xff", "a?*b"} {
		f.Add(s, 2)
	}
	f.Fuzz(func(t *testing.T, raw string, n int) {
		name, err := Name(raw)
		if err != nil {
			return
		}
		check := func(s string) {
			if s == "" || len(s) > maxName || !utf8.ValidString(s) || strings.ContainsAny(s, "/\\\x00<>:\"|?*\n \u202e") || s[0] == '.' || s == "_" {
				t.Errorf("%q became %q", raw, s)
			}
		}
		check(name)
		if again, err := Name(name); err != nil || again != name {
			t.Errorf("%q became %q, and that %q, %v", raw, name, again, err)
		}
		if n = 2 + (n&0xffff)%999; n < 2 {
			return
		}
		second := numbered(name, n)
		check(second)
		if second == name || second == numbered(name, n+1) {
			t.Errorf("%q numbered %d is %q", name, n, second)
		}
		if temporary := temporaryName(name); len(temporary) > maxName || !ours.MatchString(temporary) {
			t.Errorf("%q is written as %q", name, temporary)
		}
	})
}
