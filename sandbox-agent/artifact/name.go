package artifact

import (
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// name is the file's base name as text that is safe to show: invalid bytes and
// control or format characters (a newline, a right-to-left override) are _.
func name(path string) string {
	base := filepath.Base(path)
	if !utf8.ValidString(base) {
		base = strings.ToValidUTF8(base, "_")
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' {
			return '_'
		}
		return r
	}, base)
}
