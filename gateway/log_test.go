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

// A result that leaves output out names the logs that hold it whole: in the
// structured result, in its text, and as links, in this order.
func TestResultNamesItsLogs(t *testing.T) {
	t.Parallel()
	stderrID := strings.Repeat("e1", 16)
	out := &client.LogFile{ID: artifactID, Path: ".berth/logs/1.stdout", Size: 300 << 20, ExpiresIn: 3600}
	failed := &client.LogFile{ID: stderrID, Path: ".berth/logs/1.stderr", Size: 5, Truncated: true, ExpiresIn: 3600}
	uri := artifactOf + "s."
	outLink := &mcp.ResourceLink{URI: uri + artifactID, Name: "stdout.log", MIMEType: "text/plain", Description: `The whole of stdout. Commands find it at "/workspace/.berth/logs/1.stdout".`, Size: &out.Size}
	errLink := &mcp.ResourceLink{URI: uri + stderrID, Name: "stderr.log", MIMEType: "text/plain", Description: `The beginning of stderr: there was no more room. Commands find it at "/workspace/.berth/logs/1.stderr".`, Size: &failed.Size}
	tests := map[string]struct {
		log   *client.ExecLog
		links []mcp.Content
		uris  object
	}{
		"none":   {nil, nil, object{}},
		"empty":  {&client.ExecLog{}, nil, object{}},
		"stdout": {&client.ExecLog{Stdout: out}, []mcp.Content{outLink}, object{"log_uri": uri + artifactID}},
		"stderr": {&client.ExecLog{Stderr: failed}, []mcp.Content{errLink}, object{"stderr_log_uri": uri + stderrID}},
		"both":   {&client.ExecLog{Stdout: out, Stderr: failed}, []mcp.Content{outLink, errLink}, object{"log_uri": uri + artifactID, "stderr_log_uri": uri + stderrID}},
	}
	forEachEra(t, func(t *testing.T, era string) {
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				l := newLive(t)
				l.agent.exec = func(w http.ResponseWriter, _ *http.Request, _ client.ExecRequest) {
					agentJSON(w, client.ExecResult{Stdout: "a", Truncated: true, OmittedBytes: 9, Log: tc.log})
				}
				result := bash(t, l.client(era), "x")
				want := object{"stdout": "a", "stderr": "", "exit_code": 0., "duration_ms": 0., "truncated": true, "omitted_bytes": 9.}
				for k, v := range tc.uris {
					want[k] = v
				}
				if diff := cmp.Diff(want, structured(t, result)); diff != "" {
					t.Errorf("structured result (-want +got):\n%s", diff)
				}
				first := result.Content[0].(*mcp.TextContent).Text
				for _, v := range tc.uris {
					if !strings.Contains(first, v.(string)) {
						t.Errorf("the text does not name %s: %s", v, first)
					}
				}
				if diff := cmp.Diff(tc.links, append([]mcp.Content(nil), result.Content[1:]...)); diff != "" {
					t.Errorf("links (-want +got):\n%s", diff)
				}
			})
		}
	})
}

// R18: an impossible log is not passed on: its URI would be another session's.
func TestLyingLogs(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"malformed id":  `{"id":"` + artifactID + `?x","size":1}`,
		"no id":         `{"size":1}`,
		"negative size": `{"id":"` + artifactID + `","size":-1}`,
		"endless path":  `{"id":"` + artifactID + `","size":1,"path":"` + strings.Repeat("x", 5000) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLive(t)
			l.agent.exec = func(w http.ResponseWriter, _ *http.Request, _ client.ExecRequest) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"stdout":"","log":{"stderr":%s}}`, file)
			}
			wantFailure(t, name, bash(t, l.client(eras[1]), "x"), "sandbox exec failed: the sandbox's agent gave an answer that can't be used")
		})
	}
}
