package gateway_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// Each answer names its request, whatever it is; and so does each line about it.
func TestEachAnswerNamesItsRequest(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		method, path, token, body string
		status                    int
	}{
		"tool":            {"POST", "/mcp", "alice", message("2025-11-25", "tools/call", `"name":"bash","arguments":{"command":"x"}`), 200},
		"method unknown":  {"POST", "/mcp", "alice", message("2025-11-25", "tools/fly", ``), 400},
		"unauthenticated": {"POST", "/mcp", "", "{}", 401},
		"too large":       {"POST", "/mcp", "alice", strings.Repeat(" ", 4<<20+1), 413},
		"upload":          {"POST", "/sessions/S/files?name=n", "alice", "", 400},
		"artifact":        {"GET", "/artifacts/none", "alice", "", 404},
		"deletion":        {"DELETE", "/sessions/S", "alice", "", 400},
		"nothing there":   {"GET", "/", "alice", "", 404},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLive(t)
			resp, _ := l.do(tc.method, tc.path, tc.token, strings.NewReader(tc.body), func(r *http.Request) {
				toolHeaders("2025-11-25", "s")(r)
				r.Header.Set("X-Request-ID", "trace-7f3a")
			})
			if resp.StatusCode != tc.status {
				t.Errorf("status %d, want %d", resp.StatusCode, tc.status)
			}
			if got := resp.Header.Values("X-Request-ID"); len(got) != 1 || got[0] != "trace-7f3a" {
				t.Errorf("X-Request-ID: %q, want the caller's", got)
			}
		})
	}
}

// A call that fails for no fault of its caller's says by which id its lines in the
// log are found, in both eras and over HTTP; one that its caller got wrong doesn't,
// since there is nothing to look for.
func TestFailuresNameTheirRequest(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		l := newLive(t)
		l.agent.exec = func(w http.ResponseWriter, _ *http.Request, _ client.ExecRequest) {
			w.WriteHeader(http.StatusInternalServerError)
		}
		call := func(arguments string) string {
			_, answer := l.do(http.MethodPost, "/mcp", "alice", strings.NewReader(message(era, "tools/call", `"name":"bash","arguments":`+arguments)), func(r *http.Request) {
				toolHeaders(era, "s")(r)
				r.Header.Set("X-Request-ID", "r-1")
			})
			return answer
		}
		if answer := call(`{"command":"x"}`); !strings.Contains(answer, "sandbox exec failed: ") || !strings.Contains(answer, `(request r-1)"`) {
			t.Errorf("a failure doesn't name its request: %s", answer)
		}
		if answer := call(`{"command":""}`); !strings.Contains(answer, "invalid arguments") || strings.Contains(answer, "r-1") {
			t.Errorf("an invalid call names its request: %s", answer)
		}
		if !strings.Contains(l.log.String(), `"code":"failed","request":"r-1"`) {
			t.Error("the audit line of the failure doesn't name its request")
		}
	})
	t.Run("HTTP", func(t *testing.T) {
		t.Parallel()
		l := newLive(t)
		l.agent.stop()
		resp, answer := l.do(http.MethodPost, "/sessions/s/files?name=n", "alice", strings.NewReader("x"), func(r *http.Request) { r.Header.Set("X-Request-ID", "r-2") })
		var refusal struct{ Error struct{ Request string } }
		if err := json.Unmarshal([]byte(answer), &refusal); err != nil || resp.StatusCode < 500 || refusal.Error.Request != "r-2" {
			t.Errorf("status %d: %s", resp.StatusCode, answer)
		}
	})
}
