package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

var artifactID = strings.Repeat("0f", 16)

const artifactOf = "artifact://berth/sandboxes."

// R31: the result says everything about the file and holds nothing of it.
func TestExportResult(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		l := newLive(t)
		l.agent.artifacts[artifactID] = fakeArtifact{"report.csv", "text/csv", []byte("secret,bytes")}
		result := call(t, l.client(era), "export_artifact", map[string]any{"path": "report.csv"})
		uri := artifactOf + "s." + artifactID
		want := map[string]any{"name": "report.csv", "mimeType": "text/csv", "size": 12., "uri": uri, "expires_in": 300.}
		if diff := cmp.Diff(want, result.StructuredContent); diff != "" {
			t.Errorf("structured result (-want +got):\n%s", diff)
		}
		if got, want := text(t, result), `Exported "report.csv" (text/csv, 12 bytes) as `+uri+`, readable for 5 minutes.`; got != want {
			t.Errorf("text %q, want %q", got, want)
		}
		link, ok := result.Content[1].(*mcp.ResourceLink)
		if !ok || link.URI != uri || link.Name != "report.csv" || link.MIMEType != "text/csv" || *link.Size != 12 {
			t.Errorf("resource link %+v", result.Content[1])
		}
		if all, _ := json.Marshal(result); bytes.Contains(all, []byte("secret")) || bytes.Contains(all, []byte("workspace")) {
			t.Errorf("the result holds bytes or a path: %s", all)
		}
	})
}

// R30: what can't be exported is an error of text only, in the agent's words.
func TestExportFailure(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	c := l.client(eras[1])
	for name, tc := range map[string]struct {
		arguments any
		want      string
	}{
		"missing file":      {map[string]any{"path": "nothing"}, "artifact export failed: no such file"},
		"no path":           {map[string]any{}, "invalid arguments: "},
		"empty path":        {map[string]any{"path": ""}, "invalid arguments: "},
		"another argument":  {map[string]any{"path": "x", "session": "y"}, "invalid arguments: "},
		"path of a number":  {map[string]any{"path": 1}, "invalid arguments: "},
		"arguments missing": {nil, "invalid arguments: "},
	} {
		result := call(t, c, "export_artifact", tc.arguments)
		if got := text(t, result); !result.IsError || result.StructuredContent != nil || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: isError %v, structured %v, text %q; want %q", name, result.IsError, result.StructuredContent, got, tc.want)
		}
	}
}

// R32: text only if it is valid UTF-8 and of a textual type; every byte arrives.
func TestReadGivesTheExactBytes(t *testing.T) {
	t.Parallel()
	eightMiB := bytes.Repeat([]byte{0, 0xff, '<', '\n'}, 2<<20)
	tests := map[string]struct {
		mimeType string
		data     []byte
		text     bool
	}{
		"text":                   {"text/plain; charset=utf-8", []byte("grüß\u2028 <&> \x00\r\n"), true},
		"JSON":                   {"application/json", []byte(`{}`), true},
		"SVG":                    {"image/svg+xml", []byte(`<svg/>`), true},
		"Latin-1 as text":        {"text/plain", []byte("gr\xfc\xdf"), false},
		"binary":                 {"application/octet-stream", []byte("plain words"), false},
		"picture":                {"image/png", []byte{0x89, 'P', 'N', 'G'}, false},
		"empty":                  {"text/plain", nil, false},
		"8 MiB, the most":        {"application/octet-stream", eightMiB, false},
		"replacement characters": {"text/plain", []byte("\ufffd"), true},
	}
	forEachEra(t, func(t *testing.T, era string) {
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				l := newLive(t)
				l.agent.artifacts[artifactID] = fakeArtifact{"f", tc.mimeType, tc.data}
				l.agent.session = &client.Session{}
				c := l.connect(era, "alice", "") // no X-Session-ID: the owner needs none
				result, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: artifactOf + "s." + artifactID})
				if err != nil {
					t.Fatalf("read: %v", err)
				}
				got := result.Contents[0]
				isText := got.Blob == nil
				data := got.Blob
				if isText {
					data = []byte(got.Text)
				}
				if isText != tc.text || !bytes.Equal(data, tc.data) || got.MIMEType != tc.mimeType {
					t.Errorf("text %v, %d bytes, type %q; want text %v, %d bytes, type %q", isText, len(data), got.MIMEType, tc.text, len(tc.data), tc.mimeType)
				}
				if era >= "2026-07-28" && result.CacheScope != "private" {
					t.Errorf("cacheScope %q, want private", result.CacheScope)
				}
			})
		}
	})
}

// R32: an empty file is an empty blob on the wire, not an absent one.
func TestEmptyFileIsAnEmptyBlobOnTheWire(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.agent.artifacts[artifactID] = fakeArtifact{"empty.txt", "text/plain", nil}
	l.agent.session = &client.Session{}
	_, body := l.do(http.MethodPost, "/mcp", "alice",
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"`+artifactOf+"s."+artifactID+`"}}`),
		func(r *http.Request) { mcpHeaders(r, eras[0]) })
	if !strings.Contains(body, `"blob":""`) {
		t.Errorf("answer %s, want an empty blob", body)
	}
}

// R33: unknown, expired, foreign and malformed are one answer, by the protocol's
// code.
func TestNotFoundIsIndistinguishable(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		l := newLive(t)
		l.agent.artifacts[artifactID] = fakeArtifact{"f", "text/plain", []byte("x")}
		l.agent.session = &client.Session{}
		l.api.put(t, readyOn(newSandbox("bobs", "bob"), l.agent))
		fresh := newAgent(t, "pod-fresh") // holds nothing yet and is bound to nothing
		l.api.put(t, readyOn(newSandbox("fresh", "alice"), fresh))
		code := map[string]int64{"2025-11-25": -32002, "2026-07-28": -32602}[era]
		tests := map[string]struct{ uri, header string }{
			"unknown id":               {artifactOf + "s." + strings.Repeat("1", 32), ""},
			"foreign X-Session-ID":     {artifactOf + "s." + artifactID, "other"},
			"another's session":        {artifactOf + "bobs." + artifactID, ""},
			"no such session":          {artifactOf + "absent." + artifactID, ""},
			"fresh agent":              {artifactOf + "fresh." + artifactID, ""},
			"another namespace":        {"artifact://berth/kube-system.s." + artifactID, ""},
			"short id":                 {artifactOf + "s.0f", ""},
			"upper-case id":            {artifactOf + "s." + strings.ToUpper(artifactID), ""},
			"two parts":                {"artifact://berth/s." + artifactID, ""},
			"four parts":               {artifactOf + "s.x." + artifactID, ""},
			"an unknown parameter":     {artifactOf + "s." + artifactID + "?offset=0&x=1", ""},
			"a parameter twice":        {artifactOf + "s." + artifactID + "?offset=0&offset=0", ""},
			"parameters in disorder":   {artifactOf + "s." + artifactID + "?length=1&offset=0", ""},
			"a negative offset":        {artifactOf + "s." + artifactID + "?offset=-1", ""},
			"a length of nothing":      {artifactOf + "s." + artifactID + "?length=0", ""},
			"an empty query":           {artifactOf + "s." + artifactID + "?", ""},
			"a part of an unknown":     {artifactOf + "s." + strings.Repeat("1", 32) + "?offset=0&length=1", ""},
			"another scheme":           {"file:///etc/passwd", ""},
			"a control character":      {artifactOf + "s.\u0001" + artifactID, ""},
			"a quotation mark":         {artifactOf + `s."` + artifactID, ""},
			"percent-encoded":          {artifactOf + "s%2e" + artifactID, ""},
			"empty":                    {"x:", ""},
			"a newline and the rest":   {artifactOf + "s." + artifactID + "\n", ""},
			"a path up":                {artifactOf + "../s." + artifactID, ""},
			"not ASCII":                {artifactOf + "sé." + artifactID, ""},
			"another host of the same": {"artifact://other/sandboxes.s." + artifactID, ""},
		}
		for name, tc := range tests {
			if era == eras[1] && strings.ContainsFunc(tc.uri, func(r rune) bool { return r < ' ' || r > '~' }) {
				continue // this era wants the URI in a header, where such characters can't be
			}
			t.Run(name, func(t *testing.T) {
				c := l.connect(era, "alice", tc.header)
				_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: tc.uri})
				var wire *jsonrpc.Error
				if !errors.As(err, &wire) {
					t.Fatalf("error %v, want a JSON-RPC error", err)
				}
				data, _ := json.Marshal(map[string]string{"uri": tc.uri})
				if wire.Code != code || wire.Message != "Resource not found" || string(wire.Data) != string(data) {
					t.Errorf("code %d, message %q, data %s; want %d, %q, %s", wire.Code, wire.Message, wire.Data, code, "Resource not found", data)
				}
			})
		}
		if creates, _, _, _ := l.api.counts(); creates != 3 {
			t.Errorf("%d Sandboxes were created, want the test's 3: reading makes none", creates)
		}
	})
}

// R33: another replica and another MCP session read it, after the first has gone.
func TestAnotherReplicaReads(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		l := newLive(t)
		l.agent.artifacts[artifactID] = fakeArtifact{"f.txt", "text/plain", []byte("hello")}
		exporter := l.client(era)
		out := call(t, exporter, "export_artifact", map[string]any{"path": "f.txt"}).StructuredContent.(map[string]any)
		if err := exporter.Close(); err != nil {
			t.Fatal(err)
		}
		l.stop()
		if err := <-l.done; err != nil {
			t.Fatal(err)
		}
		other := newStack(t, l.api, nil)
		for _, header := range []string{"", "s"} {
			result, err := other.connect(era, "alice", header).ReadResource(t.Context(), &mcp.ReadResourceParams{URI: out["uri"].(string)})
			if err != nil || result.Contents[0].Text != "hello" {
				t.Errorf("with X-Session-ID %q: %+v, %v; want hello", header, result, err)
			}
		}
	})
}

// R33, R34: after the session's deletion it is not found; while its pod is away
// it is an error that says so, with a code of its own.
func TestReadWithoutPod(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	api.put(t, withReady(newSandbox("s", "alice"), metav1.ConditionFalse, berthv1alpha1.ReasonImagePullBackOff, "no such image"))
	s := newStack(t, api, nil)
	c := s.connect(eras[1], "alice", "")
	read := func() *jsonrpc.Error {
		_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: artifactOf + "s." + artifactID})
		var wire *jsonrpc.Error
		if !errors.As(err, &wire) {
			t.Fatalf("error %v, want a JSON-RPC error", err)
		}
		return wire
	}
	if e := read(); e.Code != jsonrpc.CodeInternalError || withoutRequest(e.Message) != `artifact read failed: session "s" is not ready: ImagePullBackOff: no such image` {
		t.Errorf("without a pod: %v, want an internal error that says why", e)
	}
	if resp, body := s.do(http.MethodDelete, "/sessions/s", "alice", nil, nil); resp.StatusCode != 204 {
		t.Fatalf("DELETE: %d %s", resp.StatusCode, body)
	}
	if e := read(); e.Code != -32602 || e.Message != "Resource not found" {
		t.Errorf("after the deletion: %v, want not found", e)
	}
}

// R36's bound: what is larger than 8 MiB is not read at once, and the error says
// how to read it.
func TestLargeArtifactIsReadInParts(t *testing.T) {
	t.Parallel()
	const most = 8 << 20
	data := bytes.Repeat([]byte("0123456789abcdef"), most/16)
	data = append(data, "xyz"...)
	uri := artifactOf + "s." + artifactID
	tooLarge := func(size int) string {
		return fmt.Sprintf("artifact read failed: artifact is too large to be read at once: %d bytes, at most %d: read it in parts, beginning with %s?offset=0&length=%d", size, most, uri, most)
	}
	tests := map[string]struct {
		query string
		want  []byte
		err   string
	}{
		"without a part":           {"", nil, tooLarge(len(data))},
		"from the beginning":       {"?offset=0", nil, tooLarge(len(data))},
		"one byte too many":        {fmt.Sprintf("?offset=0&length=%d", most+1), nil, tooLarge(most + 1)},
		"the most":                 {fmt.Sprintf("?offset=0&length=%d", most), data[:most], ""},
		"the most by length alone": {fmt.Sprintf("?length=%d", most), data[:most], ""},
		"the rest":                 {fmt.Sprintf("?offset=%d", most), []byte("xyz"), ""},
		"more than the rest":       {fmt.Sprintf("?offset=%d&length=%d", most, most+1), []byte("xyz"), ""},
		"8 MiB from 3 on":          {"?offset=3", data[3:], ""},
		"one byte":                 {"?offset=10&length=1", []byte("a"), ""},
		"the last byte":            {fmt.Sprintf("?offset=%d", most+2), []byte("z"), ""},
		"at the end":               {fmt.Sprintf("?offset=%d", most+3), nil, "artifact read failed: the offset is at or beyond the end"},
		"beyond the end":           {"?offset=999999999999999999&length=999999999999999999", nil, "artifact read failed: the offset is at or beyond the end"},
	}
	forEachEra(t, func(t *testing.T, era string) {
		l := newLive(t)
		l.agent.artifacts[artifactID] = fakeArtifact{"f.log", "text/plain; charset=utf-8", data}
		l.agent.session = &client.Session{}
		c := l.connect(era, "alice", "")
		for name, tc := range tests {
			result, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri + tc.query})
			if tc.err != "" {
				var wire *jsonrpc.Error
				if !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInternalError || wire.Message != tc.err {
					t.Errorf("%s: error %v, want %q", name, err, tc.err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if got := result.Contents[0]; got.Text != string(tc.want) || got.URI != uri+tc.query || got.Blob != nil {
				t.Errorf("%s: %d bytes of %s, want %d", name, len(got.Text), got.URI, len(tc.want))
			}
		}
	})
}

// A part's bytes are exact: one that begins or ends within a character is a blob.
func TestPartThatCutsACharacterIsABlob(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.agent.artifacts[artifactID] = fakeArtifact{"f.log", "text/plain", []byte("grüße")} // ü is at 2 and 3
	l.agent.session = &client.Session{}
	c := l.connect(eras[1], "alice", "")
	for query, want := range map[string]struct{ text, blob string }{
		"?offset=0&length=2": {"gr", ""},
		"?offset=0&length=3": {"", "gr\xc3"},
		"?offset=0&length=4": {"grü", ""},
		"?offset=3&length=1": {"", "\xbc"},
		"?offset=3":          {"", "\xbcße"},
		"?offset=4":          {"ße", ""},
	} {
		result, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: artifactOf + "s." + artifactID + query})
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		if got := result.Contents[0]; got.Text != want.text || string(got.Blob) != want.blob {
			t.Errorf("%s: text %q, blob %q; want %q, %q", query, got.Text, got.Blob, want.text, want.blob)
		}
	}
}

// R34: a reader that goes takes its request to the agent along, and frees its
// place for the next.
func TestReaderGone(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.agent.session = &client.Session{}
	l.agent.artifacts[artifactID] = fakeArtifact{"f", "text/plain", []byte("x")}
	began, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	slow := strings.Repeat("a", 32)
	l.agent.before = func(_ http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, slow) {
			return false
		}
		began <- struct{}{}
		hang(r)
		ended <- struct{}{}
		return true
	}
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 { // as many as are read at a time
		c := l.connect(eras[1], "alice", "")
		go func() {
			if _, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: artifactOf + "s." + slow}); err == nil {
				t.Error("the cancelled read succeeded")
			}
		}()
	}
	<-began
	<-began
	cancel()
	<-ended
	<-ended
	timeout, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	if _, err := l.connect(eras[1], "alice", "").ReadResource(timeout, &mcp.ReadResourceParams{URI: artifactOf + "s." + artifactID}); err != nil {
		t.Errorf("the next read: %v", err)
	}
}
