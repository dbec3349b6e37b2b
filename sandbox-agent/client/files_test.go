package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// part answers with a part of a file.
func part(status int, facts, contentRange, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(wire.FactsHeader, facts)
		if contentRange != "" {
			w.Header().Set("Content-Range", contentRange)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the client may have had enough
	}
}

const goodFacts = `"size":10,"mode":"0644","modified":"2026-12-01T00:00:00Z","mime_type":"text/plain","encoding":"utf-8"`

// An agent may lie: what no file has is refused.
func TestReadBytesRefusesLies(t *testing.T) {
	t.Parallel()
	good := "{" + goodFacts + "}"
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		span   Span
	}{
		"no facts":              {part(200, "", "", "0123456789"), Span{}},
		"malformed facts":       {part(200, "{", "", "0123456789"), Span{}},
		"a negative size":       {part(200, strings.Replace(good, "10", "-1", 1), "", "0123456789"), Span{}},
		"a bad mode":            {part(200, strings.Replace(good, "0644", "rw-r", 1), "", "0123456789"), Span{}},
		"a type of two lines":   {part(200, strings.Replace(good, "text/plain", `text/plain;\n charset=utf-8`, 1), "", "0123456789"), Span{}},
		"a type beyond ASCII":   {part(200, strings.Replace(good, "text/plain", `text/plain; charset=\"\u00fc\"`, 1), "", "0123456789"), Span{}},
		"a bad type":            {part(200, strings.Replace(good, "text/plain", "a b", 1), "", "0123456789"), Span{}},
		"a bad encoding":        {part(200, strings.Replace(good, "utf-8", "ebcdic", 1), "", "0123456789"), Span{}},
		"less than the whole":   {part(200, good, "", "012345678"), Span{}},
		"the whole of a part":   {part(200, good, "", "0123456789"), Span{Offset: 1}},
		"no range":              {part(206, good, "", "0123456789"), Span{}},
		"a malformed range":     {part(206, good, "bytes */10", "0123456789"), Span{}},
		"another range":         {part(206, good, "bytes 1-2/10", "12"), Span{Offset: 2}},
		"a longer range":        {part(206, good, "bytes 2-4/10", "234"), Span{Offset: 2, Length: 2}},
		"a range of another":    {part(206, good, "bytes 2-3/11", "23"), Span{Offset: 2, Length: 2}},
		"more than a read":      {part(200, good, "", strings.Repeat("x", wire.MaxFileRead+1)), Span{}},
		"a range and less than": {part(206, good, "bytes 2-4/10", "23"), Span{Offset: 2, Length: 3}},
	} {
		client, pod := lying(t, Options{}, c.answer)
		if got, err := client.ReadBytes(t.Context(), pod, "f", c.span); !errors.Is(err, ErrBadAnswer) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestReadLinesRefusesLies(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string]string{
		"no lines":          ``,
		"another first":     `"first":1,"count":1,"offset":2`,
		"too many":          `"first":2,"count":4,"offset":2`,
		"a negative count":  `"first":2,"count":-1,"offset":2`,
		"a negative offset": `"first":2,"count":1,"offset":-2`,
		"a bad next":        `"first":2,"count":1,"offset":2,"next":4,"next_offset":5`,
		"next not beyond":   `"first":2,"count":1,"offset":2,"next":3,"next_offset":2`,
		"a small total":     `"first":2,"count":2,"offset":2,"total":2`,
		"cut, uncounted":    `"first":2,"count":2,"offset":2,"cut":[{"line":2,"offset":2,"size":5,"kept":2}]`,
		"cut, elsewhere":    `"first":2,"count":1,"offset":2,"cut_count":1,"cut":[{"line":3,"offset":2,"size":5,"kept":2}]`,
		"cut, before":       `"first":2,"count":1,"offset":2,"cut_count":1,"cut":[{"line":2,"offset":1,"size":5,"kept":2}]`,
		"cut to more":       `"first":2,"count":1,"offset":2,"cut_count":1,"cut":[{"line":2,"offset":2,"size":5,"kept":6}]`,
		"cut more than all": `"first":2,"count":1,"offset":2,"cut_count":2`,
	} {
		facts := "{" + goodFacts + `,"lines":{` + lines + "}}"
		if lines == "" {
			facts = "{" + goodFacts + "}"
		}
		client, pod := lying(t, Options{}, part(200, facts, "", "x\n"))
		if got, err := client.ReadLines(t.Context(), pod, "f", Lines{First: 2, Count: 3}); !errors.Is(err, ErrBadAnswer) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestWriteAndEditRefuseLies(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"another size": `{"path":"f","size":2,"mode":"0644"}`,
		"no path":      `{"size":1,"mode":"0644"}`,
		"a long path":  `{"path":"` + strings.Repeat("a", 3*wire.MaxPath+1) + `","size":1,"mode":"0644"}`,
		"no mode":      `{"path":"f","size":1}`,
	} {
		client, pod := lying(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			answer(200, body)(w, r)
		})
		if got, err := client.WriteFile(t.Context(), pod, "f", 1, strings.NewReader("x")); !errors.Is(err, ErrBadAnswer) {
			t.Errorf("write, %s: %+v, %v", name, got, err)
		}
	}
	for name, body := range map[string]string{
		"no edits":        `{"path":"f","size":1}`,
		"too many":        `{"path":"f","size":1,"edits":[{"replaced":1,"line":1},{"replaced":1,"line":1}]}`,
		"one that wasn't": `{"path":"f","size":1,"edits":[{"replaced":0,"line":1}]}`,
		"no line":         `{"path":"f","size":1,"edits":[{"replaced":1}]}`,
		"a bad size":      `{"path":"f","size":-1,"edits":[{"replaced":1,"line":1}]}`,
		"no path":         `{"size":1,"edits":[{"replaced":1,"line":1}]}`,
	} {
		client, pod := lying(t, Options{}, answer(200, body))
		if got, err := client.EditFile(t.Context(), pod, "f", []Edit{{Old: "a", New: "b"}}); !errors.Is(err, ErrBadAnswer) {
			t.Errorf("edit, %s: %+v, %v", name, got, err)
		}
	}
}

func TestListFilesRefusesLies(t *testing.T) {
	t.Parallel()
	entry := func(change, to string) string {
		return strings.Replace(`{"path":"f","type":"file","size":1,"mode":"0644","modified":"2026-12-01T00:00:00Z"}`, change, to, 1)
	}
	list := func(entries string) string { return `{"path":".","entries":[` + entries + `]}` }
	for name, body := range map[string]string{
		"no path":          `{"entries":[]}`,
		"a bad type":       list(entry("file", "door")),
		"a negative size":  list(entry("1,", "-1,")),
		"a bad mode":       list(entry("0644", "644")),
		"an empty path":    list(entry(`"f"`, `""`)),
		"a long target":    list(entry(`"f"`, `"f","target":"`+strings.Repeat("a", 3*wire.MaxPath+1)+`"`)),
		"a long cursor":    `{"path":".","entries":[],"next":"` + strings.Repeat("a", 2*wire.MaxPath+1) + `"}`,
		"too many entries": list(strings.Repeat("{},", wire.MaxListEntries) + "{}"),
		"too long":         fmt.Sprintf(`{"path":".","entries":[],"x":%q}`, strings.Repeat("x", wire.MaxList+maxSmallAnswer)),
	} {
		client, pod := lying(t, Options{}, answer(200, body))
		if got, err := client.ListFiles(t.Context(), pod, Listing{}); !errors.Is(err, ErrBadAnswer) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	client, pod := lying(t, Options{}, answer(200, list(entry("", ""))))
	if got, err := client.ListFiles(t.Context(), pod, Listing{}); err != nil || len(got.Entries) != 1 {
		t.Errorf("an honest list: %+v, %v", got, err)
	}
}

// What is asked arrives as it is meant.
func TestFileQueries(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	client, pod := lying(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		got <- r.Method + " " + r.URL.String() + " " + r.Header.Get("Range")
		answer(404, `{"error":{"code":"not_found","message":"x"}}`)(w, r)
	})
	for want, call := range map[string]func() error{
		"GET /v1/files?line=1&path=a+b%26c ": func() error {
			_, err := client.ReadLines(t.Context(), pod, "a b&c", Lines{})
			return err
		},
		"GET /v1/files?limit=7&line=5&lines=6&path=f ": func() error {
			_, err := client.ReadLines(t.Context(), pod, "f", Lines{First: 5, Count: 6, Limit: 7})
			return err
		},
		"GET /v1/files?path=f bytes=0-1048575": func() error {
			_, err := client.ReadBytes(t.Context(), pod, "f", Span{})
			return err
		},
		"GET /v1/files?path=f bytes=5-14": func() error {
			_, err := client.ReadBytes(t.Context(), pod, "f", Span{Offset: 5, Length: 10})
			return err
		},
		"PUT /v1/file?path=f ": func() error {
			_, err := client.WriteFile(t.Context(), pod, "f", 1, strings.NewReader("x"))
			return err
		},
		"POST /v1/edit?path=f ": func() error {
			_, err := client.EditFile(t.Context(), pod, "f", nil)
			return err
		},
		"GET /v1/list?path=. ": func() error {
			_, err := client.ListFiles(t.Context(), pod, Listing{})
			return err
		},
		"GET /v1/list?after=x&depth=2&glob=%2A%2A%2F%2A.go&hidden=true&limit=3&path=d ": func() error {
			_, err := client.ListFiles(t.Context(), pod, Listing{Path: "d", Depth: 2, Glob: "**/*.go", Limit: 3, Hidden: true, After: "x"})
			return err
		},
	} {
		if err := call(); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", want, err)
		}
		if sent := <-got; sent != want {
			t.Errorf("sent %q, want %q", sent, want)
		}
	}
}

func TestFileToolErrors(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]error{
		wire.CodeChanged: ErrChanged, wire.CodeNotText: ErrNotText, wire.CodeNotDirectory: ErrNotDirectory,
		wire.CodeNoMatch: ErrNoMatch, wire.CodeManyMatches: ErrManyMatches,
	} {
		if err := (&Error{Status: 422, Code: code}); !errors.Is(err, want) {
			t.Errorf("%s is not %v", code, want)
		}
	}
	if !errors.Is(&Error{Status: 416, Code: wire.CodeOutOfRange}, ErrRange) {
		t.Error("out_of_range is not ErrRange")
	}
}
