package filetype

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	t.Parallel()
	const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	for name, c := range map[string]struct {
		path, content, mimeType string
		text                    bool
	}{
		"a picture":                       {"a", png, "image/png", false},
		"a picture that is called a text": {"a.csv", png, "image/png", false},
		"text":                            {"a", "hello\n", "text/plain", true},
		"text that is named":              {"a.css", "hello\n", "text/css", true},
		"text in Latin-1":                 {"a", "h\xe9llo w\xf6rld\n", "text/plain", true},
		"JSON":                            {"a", `{"a": 1}`, "application/json", true},
		"nothing, with a name":            {"a.png", "", "image/png", true},
		"nothing":                         {"a", "", "text/plain", true},
		"any bytes":                       {"a", "\x00\x01\x02\x80", "application/octet-stream", false},
		"any bytes, with a name":          {"a.css", "\x00\x01\x02\x80", "text/css", false},
	} {
		mimeType, text := Of(c.path, strings.NewReader(c.content))
		if mimeType != c.mimeType || text != c.text {
			t.Errorf("%s: %s, text %v; want %s, %v", name, mimeType, text, c.mimeType, c.text)
		}
	}
}
