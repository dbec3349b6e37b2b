package logline

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// One line stays one line, and is bounded, whatever its values hold.
func TestHandler(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("a", n) }
	for name, c := range map[string]struct{ is, want string }{
		"short":              {"why", "why"},
		"one byte less":      {long(Most - 1), long(Most - 1)},
		"the most":           {long(Most), long(Most)},
		"one byte more":      {long(Most + 1), long(Most) + cut},
		"an agent's":         {long(16 << 10), long(Most) + cut},
		"within a character": {long(Most-1) + "é", long(Most-1) + cut},
		"lines":              {"a\n{\"level\":\"ERROR\"}\r\u2028", "a\n{\"level\":\"ERROR\"}\r\u2028"},
	} {
		var out bytes.Buffer
		log := slog.New(Handler(slog.NewJSONHandler(&out, nil))).With("with", c.is)
		log.Warn(c.is, "text", c.is, "error", errors.New(c.is), "number", 7)
		if n := bytes.Count(out.Bytes(), []byte("\n")); n != 1 || out.Len() > 5*Most {
			t.Errorf("%s: %d lines of %d bytes", name, n, out.Len())
		}
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"msg", "text", "error", "with"} {
			if line[key] != c.want {
				t.Errorf("%s: %s is %q, want %q", name, key, line[key], c.want)
			}
		}
		if line["number"] != 7. {
			t.Errorf("%s: number is %v", name, line["number"])
		}
	}
}
