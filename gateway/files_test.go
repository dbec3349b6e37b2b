package gateway_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// texts are the texts of a result, in order.
func texts(t *testing.T, r *mcp.CallToolResult) []string {
	t.Helper()
	var all []string
	for _, c := range r.Content {
		all = append(all, c.(*mcp.TextContent).Text)
	}
	return all
}

// A model sees the file's text, and after it what it is; a host that shows the
// structured result alone shows both, too.
func TestReadFile(t *testing.T) {
	t.Parallel()
	const mime = "text/plain"
	for name, tc := range map[string]struct {
		data      fakeFile
		arguments object
		asked     string
		texts     []string
		want      object
	}{
		"whole": {
			fakeFile{mime, client.EncodingUTF8, "a\n<b>\n"}, object{}, "GET /v1/files?line=1&lines=2000&path=f",
			[]string{"a\n<b>\n", "The whole file: 2 lines."},
			object{"content": "a\n<b>\n", "encoding": "utf-8", "size": 6., "offset": 1., "lines": 2., "total_lines": 2., "byte_offset": 0.},
		},
		"some lines": {
			fakeFile{mime, client.EncodingUTF8, "a\nb\nc\nd"}, object{"offset": 2, "limit": 2}, "GET /v1/files?line=2&lines=2&path=f",
			[]string{"b\nc\n", "Lines 2 to 3 of 4. Go on with offset 4."},
			object{"content": "b\nc\n", "encoding": "utf-8", "size": 7., "offset": 2., "lines": 2., "total_lines": 4., "next_offset": 4., "byte_offset": 2., "next_byte_offset": 6.},
		},
		"empty": {
			fakeFile{mime, client.EncodingUTF8, ""}, object{}, "GET /v1/files?line=1&lines=2000&path=f",
			[]string{"The file is empty."},
			object{"content": "", "encoding": "utf-8", "size": 0., "offset": 1., "lines": 0., "total_lines": 0., "byte_offset": 0.},
		},
		"Latin-1": {
			fakeFile{mime, client.Encoding8Bit, "gr\xfc\xdf\n"}, object{}, "GET /v1/files?line=1&lines=2000&path=f",
			[]string{"gr\ufffd\ufffd\n", "The whole file: 1 line. Bytes that are not UTF-8 are shown as U+FFFD: with byte_offset they come as they are."},
			object{"content": "gr\ufffd\ufffd\n", "encoding": "utf-8", "size": 5., "offset": 1., "lines": 1., "total_lines": 1., "byte_offset": 0.},
		},
		"bytes of text": {
			fakeFile{mime, client.EncodingUTF8, "hello"}, object{"byte_offset": 1, "byte_limit": 3}, "GET /v1/files?path=f bytes=1-3",
			[]string{"ell", "Bytes 1 to 3 of 5 (text/plain), as text. Go on with byte_offset 4."},
			object{"content": "ell", "encoding": "utf-8", "size": 5., "byte_offset": 1., "next_byte_offset": 4.},
		},
		"bytes to a character's middle": {
			fakeFile{mime, client.EncodingUTF8, "aä€x"}, object{"byte_limit": 5}, "GET /v1/files?path=f bytes=0-4",
			[]string{"aä", "Bytes 0 to 2 of 7 (text/plain), as text. Go on with byte_offset 3."},
			object{"content": "aä", "encoding": "utf-8", "size": 7., "byte_offset": 0., "next_byte_offset": 3.},
		},
		"bytes within a character": {
			fakeFile{mime, client.EncodingUTF8, "€x"}, object{"byte_offset": 1, "byte_limit": 1}, "GET /v1/files?path=f bytes=1-1",
			[]string{"gg==", "Bytes 1 to 1 of 4 (text/plain), in base64. Go on with byte_offset 2."},
			object{"content": "gg==", "encoding": "base64", "size": 4., "byte_offset": 1., "next_byte_offset": 2.},
		},
		"bytes of what is no text": {
			fakeFile{mime, client.EncodingBinary, "\x00\x01"}, object{"byte_offset": 0}, "GET /v1/files?path=f bytes=0-65535",
			[]string{"AAE=", "Bytes 0 to 1 of 2 (text/plain), in base64."},
			object{"content": "AAE=", "encoding": "base64", "size": 2., "byte_offset": 0.},
		},
		"no more bytes than there are": {
			fakeFile{mime, client.EncodingUTF8, "x"}, object{"byte_limit": 1 << 40}, "GET /v1/files?path=f bytes=0-524287",
			[]string{"x", "Bytes 0 to 0 of 1 (text/plain), as text."},
			object{"content": "x", "encoding": "utf-8", "size": 1., "byte_offset": 0.},
		},
		"bytes of nothing": {
			fakeFile{mime, client.EncodingUTF8, ""}, object{"byte_offset": 0}, "GET /v1/files?path=f bytes=0-65535",
			[]string{"The file is empty."},
			object{"content": "", "encoding": "utf-8", "size": 0., "byte_offset": 0.},
		},
	} {
		tc.arguments["path"] = "f"
		tc.want["mime_type"], tc.want["about"] = mime, tc.texts[len(tc.texts)-1]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachEra(t, func(t *testing.T, era string) {
				l := newLive(t)
				l.agent.files["f"] = tc.data
				result := call(t, l.client(era), "read_file", tc.arguments)
				if diff := cmp.Diff(tc.want, structured(t, result)); diff != "" {
					t.Errorf("structured result (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.texts, texts(t, result)); diff != "" {
					t.Errorf("texts (-want +got):\n%s", diff)
				}
				if got := l.agent.lastAsked(); got != tc.asked {
					t.Errorf("the agent was asked %q, want %q", got, tc.asked)
				}
			})
		})
	}
}

// What an agent says of long lines and of line ends reaches the model.
func TestReadFileTellsOfLinesThatAreNotAsInTheFile(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.agent.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/v1/files" {
			return false
		}
		w.Header().Set("Berth-File", `{"size":100000,"mode":"0644","modified":"2026-01-02T03:04:05Z","mime_type":"text/plain","encoding":"utf-8","lines":`+
			`{"first":7,"count":3,"offset":9,"next":10,"next_offset":90000,"crlf":true,"cut":[{"line":8,"offset":11,"size":70000,"kept":32768}],"cut_count":2}}`)
		fmt.Fprint(w, "a\r\nb\r\nc\r\n")
		return true
	}
	result := call(t, l.client(eras[1]), "read_file", object{"path": "f", "offset": 7})
	want := "Lines 7 to 9; the file has 100000 bytes. Go on with offset 10. Of line 8 only the first 32768 of 70000 bytes are here: go on with byte_offset 32779. " +
		"Nor are 1 line more whole. Lines end in CRLF."
	if got := structured(t, result)["about"]; got != want {
		t.Errorf("about %q, want %q", got, want)
	}
}

func TestReadFileThatIsNoText(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		l := newLive(t)
		l.agent.files["f"] = fakeFile{"image/png", client.EncodingBinary, "\x89PNG"}
		result := call(t, l.client(era), "read_file", object{"path": "f"})
		wantFailure(t, "a picture", result, "file read failed: it is not text (image/png, 4 bytes); its bytes are read, in base64, with byte_offset, or handed over whole with export_artifact")
	})
}

// A file is written to the byte; the result says what there is now.
func TestWriteFile(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		l := newLive(t)
		c := l.client(era)
		for _, tc := range []struct {
			arguments object
			want      string
			created   bool
		}{
			{object{"content": "grüß <&>\r\n\x00"}, "grüß <&>\r\n\x00", true},
			{object{"content": ""}, "", false},
			{object{"content": "AAH/", "encoding": "base64"}, "\x00\x01\xff", false},
			{object{"content": "AAH/", "encoding": "utf-8"}, "AAH/", false},
			{object{"content": "", "encoding": "base64"}, "", false},
		} {
			tc.arguments["path"] = "d/ f"
			result := call(t, c, "write_file", tc.arguments)
			want := object{"path": "d/ f", "size": float64(len(tc.want)), "mode": "0644", "created": tc.created}
			if diff := cmp.Diff(want, structured(t, result)); diff != "" {
				t.Errorf("%v (-want +got):\n%s", tc.arguments, diff)
			}
			if got := l.agent.files["d/ f"].data; got != tc.want {
				t.Errorf("%v wrote %q, want %q", tc.arguments, got, tc.want)
			}
			if got := l.agent.lastAsked(); got != "PUT /v1/file?path=d%2F+f" {
				t.Errorf("the agent was asked %q", got)
			}
		}
	})
}

// What is written comes in one message; of a larger one, its caller learns the
// other way in.
func TestWriteFileOfALargestMessage(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		l := newLive(t)
		for body, want := range map[int]int{4 << 20: http.StatusOK, 4<<20 + 1: http.StatusRequestEntityTooLarge} {
			frame := message(era, "tools/call", `"name":"write_file","arguments":{"path":"f","content":""}`)
			content := strings.Repeat("x", body-len(frame))
			resp, answer := l.do(http.MethodPost, "/mcp", "alice", strings.NewReader(strings.Replace(frame, `"content":""`, `"content":"`+content+`"`, 1)), func(r *http.Request) {
				mcpHeaders(r, era)
				r.Header.Set("X-Session-ID", "s")
				if era >= "2026-07-28" {
					r.Header.Set("Mcp-Method", "tools/call")
					r.Header.Set("Mcp-Name", "write_file")
				}
			})
			if resp.StatusCode != want {
				t.Errorf("%d bytes: status %d, want %d: %.200s", body, resp.StatusCode, want, answer)
			}
			if want == http.StatusOK && (!strings.Contains(answer, fmt.Sprintf(`"size":%d`, len(content))) || len(l.agent.files["f"].data) != len(content)) {
				t.Errorf("%d bytes: answer %.300s", body, answer)
			}
			if want != http.StatusOK && !strings.Contains(answer, "POST /sessions/{id}/files") {
				t.Errorf("%d bytes: answer %.300s", body, answer)
			}
		}
	})
}

func TestEditFile(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		l := newLive(t)
		l.agent.put("f", "a\nb\nb\n<c>\n")
		result := call(t, l.client(era), "edit_file", object{"path": "f", "edits": []object{
			{"old": "b", "new": "B\nB", "replace_all": true}, {"old": "<c>", "new": ""},
		}})
		want := object{"path": "f", "size": 11., "replacements": 3., "edits": []any{
			object{"replacements": 2., "line": 2.}, object{"replacements": 1., "line": 6.},
		}}
		if diff := cmp.Diff(want, structured(t, result)); diff != "" {
			t.Errorf("structured result (-want +got):\n%s", diff)
		}
		if got := l.agent.files["f"].data; got != "a\nB\nB\nB\nB\n\n" {
			t.Errorf("the file is %q", got)
		}
	})
}

func TestListFiles(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		l := newLive(t)
		l.agent.put("a", "x")
		l.agent.put("b", "")
		c := l.client(era)
		entry := func(path string, size float64) object {
			return object{"path": path, "type": "file", "size": size, "modified": "2026-01-02T03:04:05Z"}
		}
		for _, tc := range []struct {
			arguments object
			asked     string
			want      object
		}{
			{object{}, "limit=500&path=.", object{"path": ".", "entries": []any{entry("a", 1), entry("b", 0)}}},
			{object{"limit": 1}, "limit=1&path=.", object{"path": ".", "entries": []any{entry("a", 1)}, "truncated": true, "next": "1"}},
			{
				object{"path": "d/é", "depth": 3, "glob": "**/*.{a,b}", "hidden": true, "limit": 1 << 40, "after": "x&y=1"},
				"after=x%26y%3D1&depth=3&glob=%2A%2A%2F%2A.%7Ba%2Cb%7D&hidden=true&limit=10000&path=d%2F%C3%A9",
				object{"path": ".", "entries": []any{entry("a", 1), entry("b", 0)}},
			},
		} {
			if diff := cmp.Diff(tc.want, structured(t, call(t, c, "list_files", tc.arguments))); diff != "" {
				t.Errorf("%v (-want +got):\n%s", tc.arguments, diff)
			}
			if got := l.agent.lastAsked(); got != "GET /v1/list?"+tc.asked {
				t.Errorf("%v asked for %q, want %q", tc.arguments, got, tc.asked)
			}
		}
	})
}

// What the schemas refuse reaches no agent.
func TestFileArguments(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.agent.put(strings.Repeat("a", 4096), "x")
	c := l.client(eras[1])
	call(t, c, "read_file", object{"path": strings.Repeat("a", 4096)})
	many := make([]object, 257)
	for i := range many {
		many[i] = object{"old": "a", "new": "b"}
	}
	before := l.agent.requests.Load()
	for _, x := range []struct {
		tool      string
		arguments object
	}{
		{"read_file", object{}},
		{"read_file", object{"path": ""}},
		{"read_file", object{"path": 1}},
		{"read_file", object{"path": []string{"f"}}},
		{"read_file", object{"path": strings.Repeat("a", 4097)}},
		{"read_file", object{"path": "f", "session": "other"}},
		{"read_file", object{"path": "f", "offset": 0}},
		{"read_file", object{"path": "f", "offset": -1}},
		{"read_file", object{"path": "f", "offset": 1.5}},
		{"read_file", object{"path": "f", "limit": 0}},
		{"read_file", object{"path": "f", "byte_offset": -1}},
		{"read_file", object{"path": "f", "byte_limit": 0}},
		{"read_file", object{"path": "f", "byte_limit": 1, "limit": 1}},
		{"read_file", object{"path": "f", "byte_offset": 0, "offset": 1}},
		{"write_file", object{"path": "f"}},
		{"write_file", object{"content": "x"}},
		{"write_file", object{"path": "", "content": "x"}},
		{"write_file", object{"path": "f", "content": 7}},
		{"write_file", object{"path": "f", "content": "x", "encoding": "latin-1"}},
		{"write_file", object{"path": "f", "content": "====", "encoding": "base64"}},
		{"write_file", object{"path": "f", "content": "AAF", "encoding": "base64"}},
		{"write_file", object{"path": "f", "content": "x", "mode": "0755"}},
		{"edit_file", object{"path": "f"}},
		{"edit_file", object{"path": "f", "edits": []object{}}},
		{"edit_file", object{"path": "f", "edits": many}},
		{"edit_file", object{"path": "f", "edits": []object{{"old": "", "new": "x"}}}},
		{"edit_file", object{"path": "f", "edits": []object{{"old": "x"}}}},
		{"edit_file", object{"path": "f", "edits": []object{{"old": "x", "new": "y", "regexp": true}}}},
		{"edit_file", object{"path": "f", "edits": object{"old": "x", "new": "y"}}},
		{"list_files", object{"path": ""}},
		{"list_files", object{"depth": 0}},
		{"list_files", object{"limit": 0}},
		{"list_files", object{"glob": ""}},
		{"list_files", object{"glob": strings.Repeat("*", 1025)}},
		{"list_files", object{"after": ""}},
		{"list_files", object{"namespace": "kube-system"}},
	} {
		wantFailure(t, fmt.Sprintf("%s %.100v", x.tool, x.arguments), call(t, c, x.tool, x.arguments), "invalid arguments: ")
	}
	if n := l.agent.requests.Load() - before; n != 0 {
		t.Errorf("%d requests reached the agent", n)
	}
}

// An agent's words reach the model as they are, and what is not theirs is told
// from them.
func TestFileFailures(t *testing.T) {
	t.Parallel()
	tools := map[string]struct {
		arguments object
		prefix    string
	}{
		"read_file":  {object{"path": "f"}, "file read failed: "},
		"write_file": {object{"path": "f", "content": "x"}, "file write failed: "},
		"edit_file":  {object{"path": "f", "edits": []object{{"old": "a", "new": "b"}}}, "file edit failed: "},
		"list_files": {object{"path": "f"}, "file list failed: "},
	}
	for code, status := range map[string]int{
		"bad_request": 400, "outside_workspace": 403, "forbidden": 403, "not_found": 404, "stalled": 408, "changed": 409,
		"too_large": 413, "out_of_range": 416, "not_regular": 422, "not_directory": 422, "no_match": 422, "many_matches": 422,
		"internal": 500, "no_space": 507,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			l := newLive(t)
			l.agent.session = &client.Session{}
			l.agent.before = func(w http.ResponseWriter, _ *http.Request) bool {
				agentError(w, status, code, `edit 2: "f" is what it is: try so`)
				return true
			}
			c := l.client(eras[0])
			for tool, x := range tools {
				wantFailure(t, tool, call(t, c, tool, x.arguments), x.prefix+`edit 2: "f" is what it is: try so`)
			}
		})
	}
}

// A session that has quiesced or ended while a file was asked for says so; one
// whose agent is new is bound, and the whole body is sent again.
func TestFileToolsRepeatWhatDidNotRun(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	fa := newAgent(t, "pod-1")
	sandbox := readyOn(newSandbox("s", "alice"), fa)
	sandbox.Status.LastTermination = &berthv1alpha1.Termination{Reason: "OOMKilled", Time: metav1.Now()}
	api.put(t, sandbox)
	c := newStack(t, api, nil).connect(eras[1], "alice", "s")
	content := strings.Repeat("0123456789", 100_000)
	out := structured(t, call(t, c, "write_file", object{"path": "f", "content": content}))
	if fa.files["f"].data != content || out["size"] != 1e6 {
		t.Errorf("a fresh agent got %d bytes, answered %v", len(fa.files["f"].data), out)
	}
	if notice, _ := out["notice"].(string); !strings.Contains(notice, "OOMKilled") {
		t.Errorf("notice %q, want what was lost", notice)
	}
	if out := structured(t, call(t, c, "read_file", object{"path": "f", "byte_offset": 0})); out["notice"] != nil {
		t.Errorf("told again: %v", out["notice"])
	}
}

// R15: what may have written is never sent again; what reads is, once.
func TestLostFileCalls(t *testing.T) {
	t.Parallel()
	for tool, tc := range map[string]struct {
		arguments object
		asked     int32
	}{
		"read_file":  {object{"path": "f"}, 2},
		"list_files": {object{}, 2},
		"write_file": {object{"path": "f", "content": "x"}, 1},
		"edit_file":  {object{"path": "f", "edits": []object{{"old": "a", "new": "b"}}}, 1},
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			l := newLive(t)
			l.agent.put("f", "a")
			l.agent.session = &client.Session{}
			var asked atomic.Int32
			l.agent.before = func(w http.ResponseWriter, r *http.Request) bool {
				if asked.Add(1) > 1 {
					return false
				}
				if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
					conn.Close()
				}
				return true
			}
			result := call(t, l.client(eras[1]), tool, tc.arguments)
			if lost := strings.Contains(text(t, result), "what was asked may have run"); lost != (tc.asked == 1) || asked.Load() != tc.asked {
				t.Errorf("asked %d times, want %d; answer %q", asked.Load(), tc.asked, text(t, result))
			}
		})
	}
}

// R18: what no honest agent says is not passed on.
func TestLyingAnswersAboutFiles(t *testing.T) {
	t.Parallel()
	const facts = `{"size":3,"mode":"0644","modified":"2026-01-01T00:00:00Z","mime_type":"text/plain","encoding":"utf-8"`
	for name, tc := range map[string]struct{ tool, facts, answer string }{
		"a file without facts":     {"read_file", ``, "abc"},
		"lines without facts":      {"read_file", facts + `}`, "abc"},
		"other lines":              {"read_file", facts + `,"lines":{"first":2,"count":1,"offset":0}}`, "abc"},
		"more lines than asked":    {"read_file", facts + `,"lines":{"first":1,"count":2001,"offset":0}}`, "abc"},
		"lines that go back":       {"read_file", facts + `,"lines":{"first":1,"count":1,"offset":0,"next":1,"next_offset":1}}`, "abc"},
		"a type of many lines":     {"read_file", strings.Replace(facts, "text/plain", `a\nb`, 1) + `,"lines":{"first":1,"count":1,"offset":0}}`, "abc"},
		"endless lines":            {"read_file", facts + `,"lines":{"first":1,"count":1,"offset":0}}`, strings.Repeat("x", 2<<20)},
		"an edit that wasn't":      {"edit_file", ``, `{"path":"f","size":1,"edits":[]}`},
		"an edit of nothing":       {"edit_file", ``, `{"path":"f","size":1,"edits":[{"replaced":0,"line":1}]}`},
		"less than was written":    {"write_file", ``, `{"path":"f","size":0,"mode":"0644"}`},
		"a mode that is none":      {"write_file", ``, `{"path":"f","size":1,"mode":"rwx"}`},
		"an unknown type of entry": {"list_files", ``, `{"path":".","entries":[{"path":"x","type":"door","mode":"0644","modified":"2026-01-01T00:00:00Z"}]}`},
		"an entry without a path":  {"list_files", ``, `{"path":".","entries":[{"path":"","type":"file","mode":"0644","modified":"2026-01-01T00:00:00Z"}]}`},
		"an endless list":          {"list_files", ``, `{"path":"` + strings.Repeat("x", 2<<20)},
		"no JSON":                  {"list_files", ``, `<html>`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLive(t)
			l.agent.session = &client.Session{}
			l.agent.before = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Type", "application/json")
				if tc.facts != "" {
					w.Header().Set("Berth-File", tc.facts)
				}
				fmt.Fprint(w, tc.answer)
				return true
			}
			arguments := map[string]object{
				"read_file": {"path": "f"}, "write_file": {"path": "f", "content": "x"}, "list_files": {},
				"edit_file": {"path": "f", "edits": []object{{"old": "a", "new": "b"}}},
			}[tc.tool]
			prefix := "file " + strings.TrimSuffix(tc.tool, "_file") + " failed: "
			if tc.tool == "list_files" {
				prefix = "file list failed: "
			}
			wantFailure(t, tc.tool, call(t, l.client(eras[1]), tc.tool, arguments), prefix+"the sandbox's agent gave an answer that can't be used")
		})
	}
}

// R16: the most that one read or list may hold fits the wire, whatever it is.
func TestLargestFileResultsFit(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	c := l.client(eras[1])
	for _, unit := range []string{"\x01", "<", "\n"} {
		data := strings.Repeat(unit, 512<<10)
		l.agent.put("f", data)
		if got := structured(t, call(t, c, "read_file", object{"path": "f", "byte_limit": 512 << 10}))["content"]; got != data {
			t.Errorf("%q: %d bytes arrived of %d", unit, len(got.(string)), len(data))
		}
	}
	data := strings.Repeat("\xff\x00\xfe", 100_000)
	l.agent.files["f"] = fakeFile{"application/octet-stream", client.EncodingBinary, data}
	if got := structured(t, call(t, c, "read_file", object{"path": "f", "byte_limit": 512 << 10}))["content"]; got != base64.StdEncoding.EncodeToString([]byte(data)) {
		t.Errorf("binary: %d bytes arrived", len(got.(string)))
	}
	delete(l.agent.files, "f")
	for i := range 250 { // of which each byte takes twelve
		l.agent.put(fmt.Sprintf("%03d", i)+strings.Repeat("<", 4000), "")
	}
	out := structured(t, call(t, c, "list_files", object{}))
	if n := len(out["entries"].([]any)); n != 125 || out["truncated"] != true || out["next"] != "125" {
		t.Errorf("%d entries, truncated %v, next %v; want half of them, and where to go on", n, out["truncated"], out["next"])
	}
}

// The caller's role and the session's owner decide, as for bash.
func TestWhoMayUseFiles(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	api.allowed = role
	for _, name := range []string{"forbidden", "bobs"} {
		api.put(t, readyOn(newSandbox(name, map[string]string{"forbidden": "alice", "bobs": "bob"}[name]), newAgent(t, "pod-"+name)))
	}
	s := newStack(t, api, nil)
	for session, want := range map[string]string{"forbidden": "not allowed", "bobs": "session not available", "": "missing X-Session-ID", "a/b": "invalid X-Session-ID"} {
		c := s.connect(eras[1], "alice", session)
		for tool, arguments := range map[string]object{
			"read_file":  {"path": "f"},
			"write_file": {"path": "f", "content": "x"},
			"edit_file":  {"path": "f", "edits": []object{{"old": "a", "new": "b"}}},
			"list_files": {},
		} {
			if got := outcome(t, call(t, c, tool, arguments)); !strings.Contains(got, want) {
				t.Errorf("%s in %q: %q, want %q", tool, session, got, want)
			}
		}
	}
}

// Like bash, file tools make the session's sandbox if there is none.
func TestFileToolsMakeASession(t *testing.T) {
	t.Parallel()
	for tool, arguments := range map[string]object{
		"read_file":  {"path": "f"},
		"write_file": {"path": "f", "content": "x"},
		"edit_file":  {"path": "f", "edits": []object{{"old": "a", "new": "b"}}},
		"list_files": {},
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			api := newAPI(t)
			call(t, newStack(t, api, shortWait).connect(eras[1], "alice", "new"), tool, arguments)
			if creates, _, _, _ := api.counts(); creates != 1 {
				t.Errorf("%d Sandboxes were created, want 1", creates)
			}
		})
	}
}
