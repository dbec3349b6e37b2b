package gateway_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// labels are all that Berth's and MCP's metrics may be told apart by.
var labels = map[string][]string{
	"operation": {"bash", "unknown_tool", "resources/read", "get_artifact", "delete_session", "upload_file"},
	"code":      {"ok", "exit_nonzero", "invalid", "not_found", "forbidden", "failed"},
	"direction": {"in", "out"},
	"reason":    {"unauthenticated", "body_too_large"},
	"state":     {"warm", "cold"},
	"result":    {"ready", "failed"},
	"kind":      {"token", "access", "not_sent"},
	"outcome":   {"allowed", "denied"},

	"mcp_method_name":  {"tools/call", "resources/read"},
	"gen_ai_tool_name": {"", "bash", "unknown"},
	"error_type":       {"", "exit_nonzero", "invalid", "not_found", "failed"},
}

var labelled = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)

// Whatever callers send, it makes no series: what they make up (names of tools,
// methods and routes, sessions, tokens) never becomes a label.
func TestLabelsAreClosed(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	call := func(method, params, token string) {
		l.do(http.MethodPost, "/mcp", token, strings.NewReader(message("2025-11-25", method, params)), toolHeaders("2025-11-25", "s"))
	}
	call("tools/call", `"name":"bash","arguments":{"command":"x"}`, "alice")
	call("tools/call", `"name":"made-up","arguments":{}`, "alice")
	call("tools/made-up", ``, "alice")
	call("resources/read", `"uri":"made-up://up"`, "alice")
	call("tools/list", ``, "made-up")
	l.do(http.MethodPost, "/mcp", "alice", strings.NewReader(strings.Repeat(" ", 4<<20+1)), toolHeaders("2025-11-25", "s"))
	l.do("MADE-UP", "/made-up", "alice", nil, nil)
	l.do(http.MethodGet, "/artifacts/made-up", "alice", nil, nil)
	l.do(http.MethodDelete, "/sessions/made-up", "alice", nil, nil)
	l.do(http.MethodPost, "/sessions/made-up/files?name=made-up&made=up", "alice", strings.NewReader("x"), nil)

	seen := make(map[string]bool)
	for line := range strings.Lines(get(t, l.health+"/metrics")) {
		if !strings.HasPrefix(line, "berth_") && !strings.HasPrefix(line, "mcp_") {
			continue
		}
		for _, label := range labelled.FindAllStringSubmatch(line, -1) {
			name, value := label[1], label[2]
			seen[name+"="+value] = true
			if name != "le" && !slices.Contains(labels[name], value) {
				t.Errorf("label %s has value %q: %s", name, value, line)
			}
		}
	}
	for _, want := range []string{"operation=unknown_tool", "gen_ai_tool_name=unknown", "code=not_found", "reason=unauthenticated", "state=warm", "error_type=not_found"} {
		if !seen[want] {
			t.Errorf("no series has %s", want)
		}
	}
}
