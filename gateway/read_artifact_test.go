package gateway_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// holding is a gateway whose session s has one artifact, and its URI.
func holding(t *testing.T, mimeType string, data []byte) (l *live, uri string) {
	t.Helper()
	l = newLive(t)
	l.agent.artifacts[artifactID] = fakeArtifact{"f", mimeType, data}
	l.agent.session = &client.Session{}
	return l, artifactOf + "s." + artifactID
}

// R36: a tool reads artifacts for who can't read resources: text as text, cut at
// characters, all else in base64, exactly; every fact is in both of its results.
func TestReadArtifactTool(t *testing.T) {
	t.Parallel()
	eightMiB := bytes.Repeat([]byte{0, 0xff, '<', '\n'}, 2<<20)
	longText := []byte(strings.Repeat("grüße <&>\n\"\\\u2028", 1<<19))
	for name, tc := range map[string]struct {
		mimeType     string
		data         []byte
		query        string
		arguments    object
		text         bool
		offset, next int // next 0 is none
		about        string
	}{
		"text":                   {"text/plain", []byte("grüße"), "", nil, true, 0, 0, `All of "f" (text/plain, 7 bytes), as text.`},
		"JSON":                   {"application/json", []byte("{}"), "", nil, true, 0, 0, `All of "f" (application/json, 2 bytes), as text.`},
		"Latin-1 as text":        {"text/plain", []byte("gr\xfc\xdf"), "", nil, false, 0, 0, `All of "f" (text/plain, 4 bytes), in base64.`},
		"binary":                 {"image/png", []byte("words"), "", nil, false, 0, 0, `All of "f" (image/png, 5 bytes), in base64.`},
		"empty":                  {"text/plain", nil, "", nil, true, 0, 0, `"f" (text/plain) is empty.`},
		"empty binary":           {"image/png", nil, "", nil, false, 0, 0, `"f" (image/png) is empty.`},
		"end within a character": {"text/plain", []byte("grüße"), "", object{"length": 3}, true, 0, 2, `Bytes 0 to 1 of 7 of "f" (text/plain), as text. Go on with offset 2.`},
		"less than a character":  {"text/plain", []byte("grüße"), "", object{"offset": 2, "length": 1}, true, 2, 4, `Bytes 2 to 3 of 7 of "f" (text/plain), as text. Go on with offset 4.`},
		"begin within one":       {"text/plain", []byte("grüße"), "", object{"offset": 3}, true, 4, 0, `Bytes 4 to 6 of 7 of "f" (text/plain), as text.`},
		"begin within the last":  {"text/plain", []byte("ü"), "", object{"offset": 1}, true, 2, 0, `Nothing more of "f" (text/plain, 2 bytes).`},
		"binary is cut exactly":  {"image/png", []byte("grüße"), "", object{"offset": 3, "length": 1}, false, 3, 4, `Bytes 3 to 3 of 7 of "f" (image/png), in base64. Go on with offset 4.`},
		"a part by the URI":      {"image/png", []byte("01234"), "?offset=1&length=2", nil, false, 1, 3, `Bytes 1 to 2 of 5 of "f" (image/png), in base64. Go on with offset 3.`},
		"the default length":     {"image/png", eightMiB, "", nil, false, 0, 64 << 10, ""},
		"8 MiB, the most":        {"image/png", append(eightMiB[:8<<20:8<<20], 'x'), "", object{"length": 8<<20 + 1}, false, 0, 8 << 20, ""},
		"megabytes of text":      {"text/plain", longText, "", object{"length": 8 << 20}, true, 0, 8 << 20, ""},
		"megabytes from within":  {"text/plain", longText, "", object{"offset": 3, "length": 1 << 20}, true, 4, 1<<20 + 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachEra(t, func(t *testing.T, era string) {
				l, uri := holding(t, tc.mimeType, tc.data)
				arguments := object{"uri": uri + tc.query}
				for k, v := range tc.arguments {
					arguments[k] = v
				}
				result := call(t, l.connect(era, "alice", ""), "read_artifact", arguments)
				out := structured(t, result)
				end := len(tc.data)
				if tc.next > 0 {
					end = int(out["next_offset"].(float64)) // 4 bytes at most from what is asked for
					if end > tc.next || end < tc.next-3 {
						t.Errorf("next_offset %d, want %d", end, tc.next)
					}
				}
				want := tc.data[tc.offset:end]
				got, err := []byte(out["content"].(string)), error(nil)
				if !tc.text {
					got, err = base64.StdEncoding.DecodeString(string(got))
				}
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("content of %d bytes, %v; want %d", len(got), err, len(want))
				}
				encoding := map[bool]string{true: "utf-8", false: "base64"}[tc.text]
				if out["encoding"] != encoding || out["name"] != "f" || out["mime_type"] != tc.mimeType || out["size"] != float64(len(tc.data)) || out["offset"] != float64(tc.offset) {
					delete(out, "content")
					t.Errorf("structured %v, want %s from %d", out, encoding, tc.offset)
				}
				if tc.about != "" && out["about"] != tc.about {
					t.Errorf("about %q, want %q", out["about"], tc.about)
				}
				checkBlocks(t, result, uri, tc.text, want, out["about"].(string))
			})
		})
	}
}

// checkBlocks checks that a result's blocks say what its structure does.
func checkBlocks(t *testing.T, r *mcp.CallToolResult, uri string, isText bool, data []byte, about string) {
	t.Helper()
	if got, ok := r.Content[len(r.Content)-1].(*mcp.TextContent); !ok || got.Text != about {
		t.Errorf("last block %+v, want %q", r.Content[len(r.Content)-1], about)
	}
	if len(data) == 0 {
		if len(r.Content) != 1 {
			t.Errorf("%d blocks for no data", len(r.Content))
		}
		return
	}
	switch block := r.Content[0].(type) {
	case *mcp.TextContent:
		if !isText || block.Text != string(data) {
			t.Errorf("text of %d bytes, want %d, text %v", len(block.Text), len(data), isText)
		}
	case *mcp.EmbeddedResource:
		if isText || block.Resource.URI != uri || !bytes.Equal(block.Resource.Blob, data) {
			t.Errorf("blob of %d bytes of %s, want %d, text %v", len(block.Resource.Blob), block.Resource.URI, len(data), isText)
		}
	default:
		t.Errorf("block %T", block)
	}
}

// R33: what can't be read is one result of the tool, byte by byte.
func TestReadArtifactToolNotFound(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		l, uri := holding(t, "text/plain", []byte("x"))
		l.api.put(t, readyOn(newSandbox("bobs", "bob"), l.agent))
		var first []byte
		for name, tc := range map[string]struct{ uri, header string }{
			"unknown":              {artifactOf + "s." + strings.Repeat("1", 32), ""},
			"foreign X-Session-ID": {uri, "other"},
			"another's":            {artifactOf + "bobs." + artifactID, ""},
			"no such session":      {artifactOf + "absent." + artifactID, ""},
			"another namespace":    {"artifact://berth/kube-system.s." + artifactID, ""},
			"malformed":            {"x", ""},
			"a bare token":         {strings.TrimPrefix(uri, "artifact://berth/"), ""},
			"another scheme":       {"file:///etc/passwd", ""},
			"a malformed part":     {uri + "?length=0", ""},
			"a control character":  {uri + "\n\x00", ""},
		} {
			result := call(t, l.connect(era, "alice", tc.header), "read_artifact", object{"uri": tc.uri})
			got, err := json.Marshal(result)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = got
			}
			if diff := cmp.Diff(string(first), string(got)); diff != "" || !result.IsError || text(t, result) != "artifact read failed: artifact not found" {
				t.Errorf("%s: %s", name, got)
			}
		}
	})
}

func TestReadArtifactToolRefuses(t *testing.T) {
	t.Parallel()
	l, uri := holding(t, "text/plain", []byte("abc"))
	c := l.client(eras[1])
	for name, tc := range map[string]struct {
		arguments object
		want      string
	}{
		"no URI":             {object{}, "invalid arguments: "},
		"negative offset":    {object{"uri": uri, "offset": -1}, "invalid arguments: "},
		"length of nothing":  {object{"uri": uri, "length": 0}, "invalid arguments: "},
		"parts twice":        {object{"uri": uri + "?offset=1", "length": 1}, "invalid arguments: the URI asks for a part"},
		"at the end":         {object{"uri": uri, "offset": 3}, "artifact read failed: the offset is at or beyond the end"},
		"beyond the end":     {object{"uri": uri, "offset": 1 << 40}, "artifact read failed: the offset is at or beyond the end"},
		"one before the end": {object{"uri": uri, "offset": 2}, ""},
	} {
		result := call(t, c, "read_artifact", tc.arguments)
		if result.IsError != (tc.want != "") || tc.want != "" && !strings.HasPrefix(text(t, result), tc.want) {
			t.Errorf("%s: %s, want %s", name, text(t, result), tc.want)
		}
	}
}

// From the agent as it is shipped: an export and a log, by the tool, until there is
// no more.
func TestRealReadArtifactTool(t *testing.T) {
	t.Parallel()
	l, workspace := newReal(t)
	c := l.client(eras[1])
	want := strings.Repeat("grüße, \U0001F600\n", 20_000)
	if err := os.WriteFile(filepath.Join(workspace, "f.txt"), []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
	all := func(uri string) string {
		var got strings.Builder
		for offset := 0.; ; {
			out := structured(t, call(t, c, "read_artifact", object{"uri": uri, "offset": offset, "length": 100_001}))
			if out["encoding"] != "utf-8" || out["offset"] != offset {
				t.Fatalf("%s from %v, want text from %v", out["encoding"], out["offset"], offset)
			}
			got.WriteString(out["content"].(string))
			next, more := out["next_offset"].(float64)
			if !more {
				return got.String()
			}
			offset = next
		}
	}
	if got := all(structured(t, call(t, c, "export_artifact", object{"path": "f.txt"}))["uri"].(string)); got != want {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
	var numbers strings.Builder
	for i := range 100_000 {
		fmt.Fprintln(&numbers, i+1)
	}
	if got := all(structured(t, bash(t, c, "seq 100000"))["log_uri"].(string)); got != numbers.String() {
		t.Errorf("log of %d bytes, want %d", len(got), numbers.Len())
	}
}
