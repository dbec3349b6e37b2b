// Package filetype says what a file holds.
package filetype

import (
	"errors"
	"io"
	"mime"
	"path/filepath"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

// sniffed is how much of a file its type is guessed from.
const sniffed = 3072

// unknown is the type of what nothing is known of.
const unknown = "application/octet-stream"

// Of guesses a file's MIME type from the content, then lets the extension decide
// between kinds of text, which look alike. It does not claim a charset: whether a
// file is valid UTF-8 only its reader can tell. text is whether the content,
// whatever the file is called, looks like text.
func Of(path string, content io.ReaderAt) (mimeType string, text bool) {
	head := make([]byte, sniffed)
	n, err := content.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return unknown, false
	}
	kind, _, err := mime.ParseMediaType(mimetype.Detect(head[:n]).String())
	if err != nil {
		kind = unknown
	}
	text = textual(kind)
	byName, _, err := mime.ParseMediaType(mime.TypeByExtension(filepath.Ext(path)))
	if err == nil && (n == 0 || kind == unknown || text && textual(byName)) {
		return byName, text
	}
	return kind, text
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
