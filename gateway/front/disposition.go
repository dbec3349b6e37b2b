package front

import (
	"net/url"
	"strings"
	"unicode"
)

// disposition is the Content-Disposition of a file that is to be saved under its
// name (RFC 6266): in UTF-8 (RFC 8187), and for clients that don't know that, in
// ASCII. Its name comes from the sandbox: what could break a header, mislead who
// reads it or leave a folder is replaced by _.
func disposition(name string) string {
	safe := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) ||
			r == unicode.ReplacementChar || strings.ContainsRune(`/\`, r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
	if strings.Trim(safe, ". ") == "" {
		safe = "artifact" // no name of a file anywhere
	}
	ascii := strings.Map(func(r rune) rune {
		// What follows a % would be decoded by some clients (RFC 6266 appendix D).
		if r > unicode.MaxASCII || r == '"' || r == '%' {
			return '_'
		}
		return r
	}, safe)
	value := `attachment; filename="` + ascii + `"`
	if ascii != safe {
		value += "; filename*=UTF-8''" + extValue(safe)
	}
	return value
}

// extValue percent-encodes all but RFC 8187's attr-char. PathEscape leaves some
// more as they are.
func extValue(s string) string {
	return strings.NewReplacer(":", "%3A", "=", "%3D", "@", "%40").Replace(url.PathEscape(s))
}
