package gateway_test

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

var update = flag.Bool("update", false, "write the golden transcripts anew")

// A transcript is what a client of each era sends and gets, byte by byte, for
// each method. What changes here changes for every client.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	uri := artifactOf + "s." + artifactID
	exchanges := []struct{ name, method, params string }{
		{"initialize", "initialize", `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}`},
		{"discover", "server/discover", ``},
		{"ping", "ping", ``},
		{"tools-list", "tools/list", ``},
		{"resources-list", "resources/list", ``},
		{"resource-templates-list", "resources/templates/list", ``},
		{"prompts-list", "prompts/list", ``},
		{"bash", "tools/call", `"name":"bash","arguments":{"command":"echo hi"}`},
		{"bash-invalid", "tools/call", `"name":"bash","arguments":{"command":"x","timeout":1.5}`},
		{"bash-extra", "tools/call", `"name":"bash","arguments":{"command":"x","session":"other"}`},
		{"bash-log", "tools/call", `"name":"bash","arguments":{"command":"seq 1000000"}`},
		{"bash-background", "tools/call", `"name":"bash","arguments":{"command":"serve","background":true}`},
		{"process-list", "tools/call", `"name":"process_list","arguments":{}`},
		{"process-output", "tools/call", `"name":"process_output","arguments":{"process_id":"p-1","wait":1}`},
		{"process-output-unknown", "tools/call", `"name":"process_output","arguments":{"process_id":"p-2"}`},
		{"process-input", "tools/call", `"name":"process_input","arguments":{"process_id":"p-1","input":"hi\n"}`},
		{"process-input-invalid", "tools/call", `"name":"process_input","arguments":{"process_id":"p-1"}`},
		{"process-signal", "tools/call", `"name":"process_signal","arguments":{"process_id":"p-1","signal":"TERM"}`},
		{"read-file", "tools/call", `"name":"read_file","arguments":{"path":"f","offset":2,"limit":1}`},
		{"read-file-missing", "tools/call", `"name":"read_file","arguments":{"path":"nothing"}`},
		{"write-file", "tools/call", `"name":"write_file","arguments":{"path":"new","content":"hi\n"}`},
		{"edit-file", "tools/call", `"name":"edit_file","arguments":{"path":"f","edits":[{"old":"two","new":"2"}]}`},
		{"list-files", "tools/call", `"name":"list_files","arguments":{}`},
		{"export", "tools/call", `"name":"export_artifact","arguments":{"path":"f.txt"}`},
		{"export-missing", "tools/call", `"name":"export_artifact","arguments":{"path":"nothing"}`},
		{"read-artifact", "tools/call", `"name":"read_artifact","arguments":{"uri":"` + uri + `"}`},
		{"read-artifact-part", "tools/call", `"name":"read_artifact","arguments":{"uri":"` + uri + `","offset":1,"length":3}`},
		{"read-artifact-unknown", "tools/call", `"name":"read_artifact","arguments":{"uri":"` + artifactOf + "s." + strings.Repeat("1", 32) + `"}`},
		{"unknown-tool", "tools/call", `"name":"fly","arguments":{}`},
		{"read", "resources/read", `"uri":"` + uri + `"`},
		{"read-part", "resources/read", `"uri":"` + uri + `?offset=1&length=3"`},
		{"read-part-beyond", "resources/read", `"uri":"` + uri + `?offset=5"`},
		{"read-part-malformed", "resources/read", `"uri":"` + uri + `?length=3&offset=1"`},
		{"read-unknown", "resources/read", `"uri":"` + artifactOf + "s." + strings.Repeat("1", 32) + `"`},
		{"unknown-method", "tools/fly", ``},
		{"prompts-get", "prompts/get", `"name":"p"`},
		{"completion", "completion/complete", `"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}`},
		{"logging-set-level", "logging/setLevel", `"level":"info"`},
		{"resources-subscribe", "resources/subscribe", `"uri":"` + uri + `"`},
		{"resources-unsubscribe", "resources/unsubscribe", `"uri":"` + uri + `"`},
	}
	forEachEra(t, func(t *testing.T, era string) {
		for _, x := range exchanges {
			t.Run(x.name, func(t *testing.T) {
				t.Parallel()
				l := newLive(t)
				l.agent.artifacts[artifactID] = fakeArtifact{"f.txt", "text/plain", []byte("hello")}
				l.agent.processes = []*fakeProcess{{request: client.ProcessRequest{ID: "p-1", Command: "sh"}, output: "$ "}}
				l.agent.put("f", "one\ntwo\nthree\n")
				if x.name == "bash-log" {
					l.agent.exec = logged
				}
				if strings.HasPrefix(x.name, "read") {
					l.agent.session = &client.Session{}
				}
				body := message(era, x.method, x.params)
				resp, answer := l.do(http.MethodPost, "/mcp", "alice", strings.NewReader(body), func(r *http.Request) {
					mcpHeaders(r, era)
					r.Header.Set("X-Session-ID", "s")
					r.Header.Set("X-Request-ID", "r-1")
					if era >= "2026-07-28" {
						r.Header.Set("Mcp-Method", x.method)
						if name := nameOf(x.params); name != "" {
							r.Header.Set("Mcp-Name", name)
						}
					}
				})
				compare(t, filepath.Join(era, x.name+".http"), transcript(body, resp, answer))
			})
		}
	})
}

// logged answers a command with a result that has a log.
func logged(w http.ResponseWriter, _ *http.Request, _ client.ExecRequest) {
	agentJSON(w, client.ExecResult{
		Stdout: "1\n[... 6888890 bytes omitted ...]\n1000000\n", Truncated: true, OmittedBytes: 6888890, DurationMS: 1, StdoutBytes: 6888896,
		Log: &client.ExecLog{Stdout: &client.LogFile{ID: artifactID, Path: ".berth/logs/1.stdout", Size: 6888896, ExpiresIn: 3600}},
	})
}

// The transcript of a call that is told of its output, and then is silent.
func TestProgressTranscript(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		l := newLive(t)
		told := make(chan struct{})
		l.agent.stream = func(f frames, _ *http.Request, _ client.ExecRequest) {
			f.stderr("warning: \x1b[1m<x>\x1b[0m\n")
			<-told
			f.result(client.ExecResult{Stderr: "warning: \x1b[1m<x>\x1b[0m\n", DurationMS: 1, StderrBytes: 21})
		}
		body := progressBody(era, `"token"`, "make")
		resp := l.begin(t.Context(), era, body)
		lines := bufio.NewReader(resp.Body)
		var answer strings.Builder
		for !strings.HasSuffix(answer.String(), "\n\n") {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			answer.WriteString(line)
		}
		close(told)
		if _, err := io.Copy(&answer, lines); err != nil {
			t.Fatal(err)
		}
		compare(t, filepath.Join(era, "bash-progress.http"), transcript(body, resp, answer.String()))
	})
}

// What HTTP answers by itself, in no era.
func TestHTTPTranscripts(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ name, method, path, token, contentType, accept, body string }{
		{"get", "GET", "/mcp", "alice", "", "text/event-stream", ""},
		{"put", "PUT", "/mcp", "alice", "", "", ""},
		{"unauthenticated", "POST", "/mcp", "", "application/json", "application/json, text/event-stream", "{}"},
		{"wrong-content-type", "POST", "/mcp", "alice", "text/plain", "application/json, text/event-stream", "{}"},
		{"wrong-accept", "POST", "/mcp", "alice", "application/json", "text/html", "{}"},
		{"empty-body", "POST", "/mcp", "alice", "application/json", "application/json, text/event-stream", ""},
		{"no-json", "POST", "/mcp", "alice", "application/json", "application/json, text/event-stream", "{"},
		{"delete", "DELETE", "/sessions/s", "alice", "", "", ""},
		{"delete-invalid", "DELETE", "/sessions/S", "alice", "", "", ""},
		{"session-get", "GET", "/sessions/s", "alice", "", "", ""},
		{"nothing-there", "GET", "/", "alice", "", "", ""},
		{"artifact", "GET", "/artifacts/sandboxes.s." + artifactID, "alice", "", "", ""},
		{"artifact-unknown", "GET", "/artifacts/sandboxes.s." + strings.Repeat("1", 32), "alice", "", "", ""},
		{"artifact-query", "GET", "/artifacts/sandboxes.s." + artifactID + "?offset=1", "alice", "", "", ""},
		{"upload", "POST", "/sessions/s/files?name=f.txt", "alice", "application/octet-stream", "", "hello"},
		{"upload-form", "POST", "/sessions/s/files?name=f.txt", "alice", "multipart/form-data; boundary=x", "", "hello"},
		{"upload-get", "GET", "/sessions/s/files", "alice", "", "", ""},
		{"metadata-unknown", "GET", "/.well-known/oauth-protected-resource", "", "", "", ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			l := newLive(t)
			l.agent.artifacts[artifactID] = fakeArtifact{"f.txt", "text/plain", []byte("hello")}
			if strings.HasPrefix(x.name, "artifact") {
				l.agent.session = &client.Session{}
			}
			resp, answer := l.do(x.method, x.path, x.token, strings.NewReader(x.body), func(r *http.Request) {
				r.Header.Set("X-Request-ID", "r-1")
				if x.contentType != "" {
					r.Header.Set("Content-Type", x.contentType)
				}
				if x.accept != "" {
					r.Header.Set("Accept", x.accept)
				}
			})
			compare(t, filepath.Join("http", x.name+".http"), transcript(x.method+" "+x.path+" "+x.body, resp, answer))
		})
	}
}

// message is a JSON-RPC request as clients of an era write it.
func message(era, method, params string) string {
	if era >= "2026-07-28" {
		if params != "" {
			params += ","
		}
		params += `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + era + `","io.modelcontextprotocol/clientCapabilities":{}}`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, params)
}

// nameOf is what the header Mcp-Name repeats.
func nameOf(params string) string {
	for _, key := range []string{`"name":"`, `"uri":"`} {
		if rest, ok := strings.CutPrefix(params, key); ok {
			name, _, _ := strings.Cut(rest, `"`)
			return name
		}
	}
	return ""
}

// started is what a process that was started is told by, and what it took.
var started = regexp.MustCompile(`duration_ms(\\?"):[0-9]+,\\?"process_id\\?":\\?"p-[0-9a-f]{16}\\?"`)

// transcript writes an exchange down, without what differs from run to run.
func transcript(sent string, resp *http.Response, answer string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "> %s\n\n%s\n", sent, resp.Status)
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		if name != "Date" {
			fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(resp.Header[name], ", "))
		}
	}
	fmt.Fprintf(&b, "\n%s", started.ReplaceAllString(answer, "duration_ms${1}:1,${1}process_id${1}:${1}p-0123456789abcdef${1}"))
	return b.Bytes()
}

func compare(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "transcripts", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run go test ./gateway -update", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
