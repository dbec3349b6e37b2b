package artifact

import (
	"errors"
	"io"
	"mime"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"
)

// sniffed is how much of a file its type is guessed from.
const sniffed = 3072

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

// mimeType guesses from the content, then lets the extension decide between
// kinds of text, which look alike. It does not claim a charset: whether a file
// is valid UTF-8 only its reader can tell.
func mimeType(path string, content io.ReaderAt) string {
	head := make([]byte, sniffed)
	n, err := content.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "application/octet-stream"
	}
	found := mimetype.Detect(head[:n])
	kind, _, err := mime.ParseMediaType(found.String())
	if err != nil {
		kind = "application/octet-stream"
	}
	byName, _, err := mime.ParseMediaType(mime.TypeByExtension(filepath.Ext(path)))
	if err != nil {
		return kind
	}
	switch text := textual(kind); {
	case n == 0, kind == "application/octet-stream", text && textual(byName):
		return byName
	}
	return kind
}

// textual tells whether files of a type are text.
func textual(kind string) bool {
	switch kind {
	case "application/json", "application/javascript", "application/xml", "application/yaml",
		"application/toml", "application/x-sh", "application/sql", "application/x-ndjson":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml")
}
