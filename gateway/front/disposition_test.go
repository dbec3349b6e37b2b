package front

import (
	"mime"
	"strings"
	"testing"
	"unicode"
)

func TestDisposition(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"report.csv":            `attachment; filename="report.csv"`,
		"a b;c=d,e'f(g).txt":    `attachment; filename="a b;c=d,e'f(g).txt"`,
		`say "hi".txt`:          `attachment; filename="say _hi_.txt"; filename*=UTF-8''say%20%22hi%22.txt`,
		"100%.txt":              `attachment; filename="100_.txt"; filename*=UTF-8''100%25.txt`,
		"grüße.txt":             `attachment; filename="gr__e.txt"; filename*=UTF-8''gr%C3%BC%C3%9Fe.txt`,
		"日本.txt":                `attachment; filename="__.txt"; filename*=UTF-8''%E6%97%A5%E6%9C%AC.txt`,
		"ü@:=&+$~!*'().txt":     `attachment; filename="_@:=&+$~!*'().txt"; filename*=UTF-8''%C3%BC%40%3A%3D&+$~%21%2A%27%28%29.txt`,
		"a\r\nSet-Cookie: x":    `attachment; filename="a__Set-Cookie: x"`,
		"a\nb":                  `attachment; filename="a_b"`,
		"exe\u202etxt.scr":      `attachment; filename="exe_txt.scr"`,
		"zero\u200bwidth\ufeff": `attachment; filename="zero_width_"`,
		"line\u2028end\u2029":   `attachment; filename="line_end_"`,
		"bell\a\x7f\u0085":      `attachment; filename="bell___"`,
		`..\..\x`:               `attachment; filename=".._.._x"`,
		"../x":                  `attachment; filename=".._x"`,
		"..name":                `attachment; filename="..name"`,
		"..":                    `attachment; filename="artifact"`,
		".":                     `attachment; filename="artifact"`,
		" ":                     `attachment; filename="artifact"`,
		"":                      `attachment; filename="artifact"`,
		"bad\xff.txt":           `attachment; filename="bad_.txt"`,
	} {
		if got := disposition(name); got != want {
			t.Errorf("disposition(%q) = %s, want %s", name, got, want)
		}
	}
}

// Whatever a file is called, its header is one line of ASCII that parses, and what
// it parses to is no path and shows as it is.
func FuzzDisposition(f *testing.F) {
	f.Add("a\"b\\c\r\nd/e%22\u202e")
	f.Fuzz(func(t *testing.T, name string) {
		got := disposition(name)
		if strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%q: %q", name, got)
		}
		kind, params, err := mime.ParseMediaType(got)
		if err != nil || kind != "attachment" {
			t.Fatalf("%q: %q: %s, %v", name, got, kind, err)
		}
		file := params["filename"]
		if file == "" || file == "." || file == ".." || strings.ContainsFunc(file, func(r rune) bool {
			return r == '/' || r == '\\' || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
		}) {
			t.Errorf("%q is saved as %q", name, file)
		}
	})
}
