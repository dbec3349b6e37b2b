package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

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
			fakeFile{mime, client.EncodingUTF8, "hello"}, object{"byte_offset": 1, "byte_limit": 3}, "GET /v1/files?path=f bytes=0-6",
			[]string{"ell", "Bytes 1 to 3 of 5 (text/plain), as text. Go on with byte_offset 4."},
			object{"content": "ell", "encoding": "utf-8", "size": 5., "byte_offset": 1., "next_byte_offset": 4.},
		},
		"bytes to a character's middle": {
			fakeFile{mime, client.EncodingUTF8, "aä€x"}, object{"byte_limit": 5}, "GET /v1/files?path=f bytes=0-7",
			[]string{"aä", "Bytes 0 to 2 of 7 (text/plain), as text. Go on with byte_offset 3."},
			object{"content": "aä", "encoding": "utf-8", "size": 7., "byte_offset": 0., "next_byte_offset": 3.},
		},
		"bytes within a character": {
			fakeFile{mime, client.EncodingUTF8, "€x"}, object{"byte_offset": 1, "byte_limit": 1}, "GET /v1/files?path=f bytes=0-4",
			[]string{"x", "Bytes 3 to 3 of 4 (text/plain), as text."},
			object{"content": "x", "encoding": "utf-8", "size": 4., "byte_offset": 3.},
		},
		"bytes fewer than a character has": {
			fakeFile{mime, client.EncodingUTF8, "abc€x"}, object{"byte_offset": 3, "byte_limit": 1}, "GET /v1/files?path=f bytes=0-6",
			[]string{"€", "Bytes 3 to 5 of 7 (text/plain), as text. Go on with byte_offset 6."},
			object{"content": "€", "encoding": "utf-8", "size": 7., "byte_offset": 3., "next_byte_offset": 6.},
		},
		"bytes within the last character": {
			fakeFile{mime, client.EncodingUTF8, "a€"}, object{"byte_offset": 2}, "GET /v1/files?path=f bytes=0-65540",
			[]string{"Nothing: the file has 4 bytes."},
			object{"content": "", "encoding": "utf-8", "size": 4., "byte_offset": 4.},
		},
		"bytes that belong to no character": {
			fakeFile{mime, client.EncodingUTF8, "abcd\x80\x81ef"}, object{"byte_offset": 4, "byte_limit": 3}, "GET /v1/files?path=f bytes=1-9",
			[]string{"gIFl", "Bytes 4 to 6 of 8 (text/plain), in base64. Go on with byte_offset 7."},
			object{"content": "gIFl", "encoding": "base64", "size": 8., "byte_offset": 4., "next_byte_offset": 7.},
		},
		"bytes of what is no text": {
			fakeFile{mime, client.EncodingBinary, "\x00\x01"}, object{"byte_offset": 0}, "GET /v1/files?path=f bytes=0-65538",
			[]string{"AAE=", "Bytes 0 to 1 of 2 (text/plain), in base64."},
			object{"content": "AAE=", "encoding": "base64", "size": 2., "byte_offset": 0.},
		},
		"no more bytes than there are": {
			fakeFile{mime, client.EncodingUTF8, "x"}, object{"byte_limit": 1 << 40}, "GET /v1/files?path=f bytes=0-524290",
			[]string{"x", "Bytes 0 to 0 of 1 (text/plain), as text."},
			object{"content": "x", "encoding": "utf-8", "size": 1., "byte_offset": 0.},
		},
		"bytes of nothing": {
			fakeFile{mime, client.EncodingUTF8, ""}, object{"byte_offset": 0}, "GET /v1/files?path=f bytes=0-65538",
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

// A byte at the end and beyond is none, however near.
func TestReadFileBeyondItsEnd(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.agent.put("f", "hello")
	l.agent.put("empty", "")
	c := l.client(eras[1])
	for _, at := range []int{5, 6, 7} { // what is farther beyond, the agent says
		result := call(t, c, "read_file", object{"path": "f", "byte_offset": at})
		wantFailure(t, fmt.Sprint(at), result, fmt.Sprintf("file read failed: the file has 5 bytes: there is no byte %d", at))
	}
	for _, at := range []int{1, 3, 4, 5} {
		result := call(t, c, "read_file", object{"path": "empty", "byte_offset": at})
		wantFailure(t, fmt.Sprint(at), result, fmt.Sprintf("file read failed: the file has 0 bytes: there is no byte %d", at))
	}
	if out := structured(t, call(t, c, "read_file", object{"path": "f", "byte_offset": 4})); out["content"] != "o" {
		t.Errorf("the last byte: %v", out)
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
