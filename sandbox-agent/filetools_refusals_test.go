package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

func wantRefusal(t *testing.T, err, kind error, message string) {
	t.Helper()
	var refusal *client.Error
	if !errors.Is(err, kind) || !errors.As(err, &refusal) || !strings.Contains(refusal.Message, message) {
		t.Errorf("%v\nwant %v: %s", err, kind, message)
	}
}

// What can go wrong, and what a caller is told.
func TestFileToolsRefuse(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{limits: client.Limits{UploadBytes: 100}})
	a.output(t, `mkdir d && mkfifo fifo && ln -s /etc/passwd out && printf 'a\nb\n' >f && printf '\377\376a\0' >utf16 && printf 'a\0' >binary && printf 'caf\351\n' >latin1`)
	for path, c := range map[string]struct {
		kind    error
		message string
	}{
		"g":                  {client.ErrNotFound, `there is no file "g"; there is "d", "f"`},
		"x/f":                {client.ErrNotFound, `there is no directory "x"; there is "d", "f"`},
		"d":                  {client.ErrNotRegular, `"d" is a directory: list it`},
		"fifo":               {client.ErrNotRegular, `"fifo" is no regular file, but a fifo`},
		"f/x":                {client.ErrNotDirectory, `"f" is not a directory`},
		"../f":               {client.ErrOutsideWorkspace, "the path leads outside the workspace"},
		"/etc/passwd":        {client.ErrOutsideWorkspace, "the path leads outside the workspace"},
		"/proc/self/environ": {client.ErrOutsideWorkspace, "the path leads outside the workspace"},
		"out":                {client.ErrOutsideWorkspace, `the link "out" leads outside`},
		"utf16":              {client.ErrNotText, `"utf16" is not text that has lines, but utf-16le (`},
		"binary":             {client.ErrNotText, `"binary" is not text that has lines, but binary (application/octet-stream, 2 bytes): read it by bytes`},
	} {
		_, err := a.client.ReadLines(t.Context(), a.pod, path, client.Lines{})
		wantRefusal(t, err, c.kind, c.message)
	}
	if c := a.lines(t, "latin1", client.Lines{}); c.Encoding != client.Encoding8Bit || string(c.Data) != "caf\xe9\n" {
		t.Errorf("%+v", c)
	}
	_, err := a.client.ReadLines(t.Context(), a.pod, "f", client.Lines{First: 3})
	wantRefusal(t, err, client.ErrRange, `"f" has 2 lines: there is no line 3`)
	_, err = a.client.ListFiles(t.Context(), a.pod, client.Listing{Path: "f"})
	wantRefusal(t, err, client.ErrNotDirectory, `"f" is a file, no directory`)
	_, err = a.client.EditFile(t.Context(), a.pod, "f", []client.Edit{{Old: "c", New: "d"}})
	wantRefusal(t, err, client.ErrNoMatch, `old is not in "f"`)
	_, err = a.client.EditFile(t.Context(), a.pod, "f", []client.Edit{{Old: "\n", New: "d"}})
	wantRefusal(t, err, client.ErrManyMatches, `2 times, at lines 1, 2`)
	_, err = a.client.EditFile(t.Context(), a.pod, "f", []client.Edit{{Old: "b", New: strings.Repeat("b", 98)}})
	wantRefusal(t, err, client.ErrTooLarge, `"f" would be larger than the limit of 100 bytes`)
	_, err = a.client.WriteFile(t.Context(), a.pod, "d", 1, strings.NewReader("x"))
	wantRefusal(t, err, client.ErrNotRegular, `"d" is a directory`)
	if got := a.output(t, "cat f && ls -A"); got != "a\nb\nbinary\nd\nf\nfifo\nlatin1\nout\nutf16\n" {
		t.Errorf("left %q", got)
	}
}

// Strict in what is asked.
func TestFileQueries(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.writeFile(t, "f", "a\nb\n")
	const octets, object = "application/octet-stream", "application/json"
	for name, c := range map[string]struct {
		method, path, kind, body string
		status                   int
		code                     string
	}{
		"no path":               {"GET", "/v1/files", "", "", 400, "bad_request"},
		"two":                   {"GET", "/v1/files?path=f&path=f", "", "", 400, "bad_request"},
		"an unknown parameter":  {"GET", "/v1/files?path=f&name=f", "", "", 400, "bad_request"},
		"a bad escape":          {"GET", "/v1/files?path=%zz", "", "", 400, "bad_request"},
		"a word for a line":     {"GET", "/v1/files?path=f&line=one", "", "", 400, "bad_request"},
		"a negative line":       {"GET", "/v1/files?path=f&line=-1", "", "", 400, "bad_request"},
		"an empty number":       {"GET", "/v1/files?path=f&limit=", "", "", 400, "bad_request"},
		"too many digits":       {"GET", "/v1/files?path=f&lines=1234567890123456789", "", "", 400, "bad_request"},
		"a NUL":                 {"GET", "/v1/files?path=f%00", "", "", 400, "bad_request"},
		"a body":                {"GET", "/v1/files?path=f", object, "{}", 400, "bad_request"},
		"put without a path":    {"PUT", "/v1/file", octets, "x", 400, "bad_request"},
		"put of a form":         {"PUT", "/v1/file?path=g", "text/plain", "x", 415, "unsupported_media"},
		"put by post":           {"POST", "/v1/file?path=g", octets, "x", 405, "method_not_allowed"},
		"edit of octets":        {"POST", "/v1/edit?path=f", octets, "{}", 415, "unsupported_media"},
		"edit without edits":    {"POST", "/v1/edit?path=f", object, "{}", 400, "bad_request"},
		"edit with more":        {"POST", "/v1/edit?path=f", object, `{"edits":[{"old":"a","new":"b","count":1}]}`, 400, "bad_request"},
		"edit twice":            {"POST", "/v1/edit?path=f", object, `{"edits":[{"old":"a","new":"b"}]}{}`, 400, "bad_request"},
		"edit of a large body":  {"POST", "/v1/edit?path=f", object, `{"edits":[{"old":"a","new":"` + strings.Repeat("b", wire.MaxEditBody) + `"}]}`, 413, "too_large"},
		"list with a bad depth": {"GET", "/v1/list?depth=a", "", "", 400, "bad_request"},
		"list with a bad flag":  {"GET", "/v1/list?hidden=yes", "", "", 400, "bad_request"},
		"list with a bad glob":  {"GET", "/v1/list?glob=%5Ba", "", "", 400, "bad_request"},
		"list after nonsense":   {"GET", "/v1/list?after=%21", "", "", 400, "bad_request"},
		"list by post":          {"POST", "/v1/list", "", "", 405, "method_not_allowed"},
	} {
		if resp, body := a.raw(t, c.method, c.path, c.kind, c.body); resp.StatusCode != c.status || errorCode(t, body) != c.code {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
	if resp, body := a.raw(t, "DELETE", "/v1/files?path=f", "", ""); resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, POST" {
		t.Errorf("DELETE: %d %s", resp.StatusCode, body)
	}
	for query, want := range map[string]string{
		"&line=0": "a\nb\n", "&line=2": "b\n", "&lines=1": "a\n", "&limit=0": "a\nb\n", "&limit=2": "a\n", "&limit=999999999999": "a\nb\n",
	} {
		if resp, body := a.raw(t, "GET", "/v1/files?path=f"+query, "", ""); resp.StatusCode != 200 || body != want {
			t.Errorf("%s: %d %q, want %q", query, resp.StatusCode, body, want)
		}
	}
	for _, query := range []string{"", "?path=.", "?hidden=false", "?limit=0&depth=0", "?limit=99999&depth=99999"} {
		if resp, body := a.raw(t, "GET", "/v1/list"+query, "", ""); resp.StatusCode != 200 || !strings.Contains(body, `"path":"f"`) {
			t.Errorf("list %s: %d %s", query, resp.StatusCode, body)
		}
	}
}

// upload_bytes bounds what is written: at the announced length, or at the byte.
func TestWriteLimit(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	a := startAgent(t, agentOptions{limits: client.Limits{UploadBytes: limit}})
	for _, size := range []int{limit - 1, limit} {
		for _, announced := range []int64{int64(size), -1} {
			if _, err := a.client.WriteFile(t.Context(), a.pod, "f", announced, bytes.NewReader(noise(size))); err != nil {
				t.Errorf("%d bytes: %v", size, err)
			}
		}
	}
	counted := &counter{Reader: bytes.NewReader(noise(limit + 1))}
	if _, err := a.client.WriteFile(t.Context(), a.pod, "f", limit+1, counted); !errors.Is(err, client.ErrTooLarge) || counted.n != 0 {
		t.Errorf("announced: %v after %d bytes, want ErrTooLarge before any", err, counted.n)
	}
	if _, err := a.client.WriteFile(t.Context(), a.pod, "new/f", -1, bytes.NewReader(noise(limit+1))); !errors.Is(err, client.ErrTooLarge) {
		t.Errorf("one byte more: %v, want ErrTooLarge", err)
	}
	if got := a.output(t, "ls -A && stat -c %s f"); got != fmt.Sprintf("f\n%d\n", limit) {
		t.Errorf("left %q", got)
	}
}

func TestWriteToAFullDisk(t *testing.T) {
	t.Parallel()
	a := asUser(t, agentOptions{}, "mount -t tmpfs -o size=1m none "+userWorkspace, "chown 1000:1000 "+userWorkspace)
	a.writeFile(t, "f", "old")
	_, err := a.client.WriteFile(t.Context(), a.pod, "f", 8<<20, bytes.NewReader(noise(8<<20)))
	wantRefusal(t, err, client.ErrNoSpace, `no space is left for "f"`)
	_, err = a.client.EditFile(t.Context(), a.pod, "f", []client.Edit{{Old: "old", New: strings.Repeat("x", 1<<20+1)}})
	wantRefusal(t, err, client.ErrNoSpace, `no space is left for "f"`)
	if got := a.output(t, "ls -A && cat f"); got != "f\nold" {
		t.Errorf("left %q", got)
	}
}

// What the sandbox's user may not do is said so.
func TestFileToolsWithoutPermission(t *testing.T) {
	t.Parallel()
	a := asUser(t, agentOptions{})
	a.output(t, "echo x >f; mkdir d open; echo x >d/f; echo x >open/f; ln f hard; chmod 400 f; chmod 500 d; echo x >unreadable; chmod 0 unreadable open")
	read := func(path string) error {
		_, err := a.client.ReadLines(t.Context(), a.pod, path, client.Lines{})
		return err
	}
	write := func(path string) error {
		_, err := a.client.WriteFile(t.Context(), a.pod, path, 1, strings.NewReader("x"))
		return err
	}
	wantRefusal(t, read("unreadable"), client.ErrForbidden, `the sandbox's user has no permission for "unreadable"`)
	wantRefusal(t, read("open/f"), client.ErrForbidden, `no permission for "open/f"`)
	wantRefusal(t, write("f"), client.ErrForbidden, `"f" can't be written to (mode 0400)`)
	wantRefusal(t, write("d/f"), client.ErrForbidden, `no permission for "d/f"`)
	wantRefusal(t, write("d/new"), client.ErrForbidden, `no permission for "d/new"`)
	wantRefusal(t, write("d/new/new"), client.ErrForbidden, `no permission for "d/new"`)
	_, err := a.client.EditFile(t.Context(), a.pod, "f", []client.Edit{{Old: "x", New: "y"}})
	wantRefusal(t, err, client.ErrForbidden, `"f" can't be written to (mode 0400)`)
	_, err = a.client.ListFiles(t.Context(), a.pod, client.Listing{Path: "open"})
	wantRefusal(t, err, client.ErrForbidden, `no permission for "open"`)
	if got := a.list(t, client.Listing{Depth: 2}); !slices.Equal(got, []string{"d", "d/f", "f", "hard", "open", "unreadable"}) {
		t.Errorf("listed %q", got)
	}
	notice := func(want string) {
		t.Helper()
		list, err := a.client.ListFiles(t.Context(), a.pod, client.Listing{Depth: 3})
		if err != nil || list.Notice != want {
			t.Errorf("notice %q, %v, want %q", list.Notice, err, want)
		}
	}
	notice(`What is in "open" is missing: it could not be read (permission denied).`)
	a.output(t, "mkdir -p d2/shut; chmod 0 d2/shut")
	notice(`What is in 2 directories is missing: they could not be read. The first is "d2/shut" (permission denied).`)
	a.output(t, "chmod 700 open d2/shut")
	notice("")
}

func TestFileToolsNeedASession(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{unbound: true})
	counted := &counter{Reader: strings.NewReader("x")}
	if _, err := a.client.WriteFile(t.Context(), a.pod, "f", 1, counted); !errors.Is(err, client.ErrSessionRequired) || counted.n != 0 {
		t.Errorf("%v after %d bytes", err, counted.n)
	}
	if resp, err := http.Get(a.url + "/v1/files?" + url.Values{"path": {"f"}}.Encode()); err != nil || resp.StatusCode != 401 {
		t.Errorf("without a token: %v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
}
