package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// role lets alice and bob do everything in sandboxes but with the session
// forbidden, of which they may only read; service accounts do as they like in
// their own namespace.
func role(s authorizationv1.SubjectAccessReviewSpec) bool {
	a := s.ResourceAttributes
	if a.Group != "berth.dev" || a.Resource != "sandboxes" || a.Subresource != "session" {
		return false
	}
	switch {
	case strings.HasPrefix(s.User, "system:serviceaccount:"+a.Namespace+":"):
		return true
	case a.Namespace != "sandboxes":
		return false
	case a.Name == "forbidden":
		return a.Verb == "get"
	}
	return s.User == "alice" || s.User == "bob"
}

// R18: callers by sessions by operations. "none" is a session that nobody made.
func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	const (
		fine        = "ok"
		unavailable = "session not available"
		forbidden   = "not allowed"
		notFound    = "Resource not found"
	)
	type answers struct{ bash, export, read, del string }
	tests := map[string]answers{ // caller/session
		"alice/alices":    {fine, fine, fine, "204 deleted"},
		"alice/bobs":      {unavailable, unavailable, notFound, "204"},
		"alice/ownerless": {fine, fine, fine, "204 deleted"},
		"alice/forbidden": {forbidden, forbidden, fine, "403"},
		"bob/alices":      {unavailable, unavailable, notFound, "204"},
		"bob/bobs":        {fine, fine, fine, "204 deleted"},
		// In its own namespace there is no session of that name, and none is made
		// here: reading by another namespace's token is refused as not found.
		"builder/alices": {"is not ready", "is not ready", notFound, "204"},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caller, session, _ := strings.Cut(name, "/")
			owner := map[string]string{"alices": "alice", "bobs": "bob", "ownerless": "", "forbidden": "alice"}[session]
			api := newAPI(t)
			api.allowed = role
			fa := newAgent(t, "pod")
			id := strings.Repeat("ab", 16)
			fa.artifacts[id] = fakeArtifact{"f.txt", "text/plain", []byte("secret of " + session)}
			fa.session = &client.Session{}
			api.put(t, readyOn(newSandbox(session, owner), fa))
			s := newStack(t, api, shortWait)
			c := s.connect(eras[1], caller, session)

			expect(t, "bash", outcome(t, bash(t, c, "true")), want.bash)
			expect(t, "export", outcome(t, call(t, c, "export_artifact", map[string]any{"path": "f.txt"})), want.export)
			got := fine
			if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "artifact://berth/sandboxes." + session + "." + id}); err != nil {
				got = err.Error()
			}
			expect(t, "read", got, want.read)
			resp, _ := s.do(http.MethodDelete, "/sessions/"+session, caller, nil, nil)
			got = fmt.Sprint(resp.StatusCode)
			if api.sandbox(t, "sandboxes", session) == nil {
				got += " deleted"
			}
			if got != want.del {
				t.Errorf("DELETE: %s, want %s", got, want.del)
			}
		})
	}
}

func outcome(t *testing.T, r *mcp.CallToolResult) string {
	if !r.IsError {
		return "ok"
	}
	return text(t, r)
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// R18: without a token that the API server takes for this gateway there is
// nothing, not even the list of tools.
func TestUnauthenticatedCallersGetNothing(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	s := newStack(t, api, nil)
	headers := map[string][]string{
		"none":           nil,
		"unknown":        {"Bearer mallory"},
		"other scheme":   {"Basic alice"},
		"no scheme":      {"alice"},
		"empty":          {"Bearer "},
		"with a space":   {"Bearer alice bob"},
		"endless":        {"Bearer " + strings.Repeat("a", 20<<10)},
		"not a token":    {"Bearer al\u00efce"},
		"lower case ok?": {"bearer mallory"},
	}
	for name, h := range headers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, body := s.do(http.MethodPost, "/mcp", "", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), func(r *http.Request) {
				mcpHeaders(r, eras[0])
				if h != nil {
					r.Header["Authorization"] = h
				}
			})
			if resp.StatusCode != 401 || resp.Header.Get("WWW-Authenticate") == "" || strings.Contains(body, "bash") {
				t.Errorf("status %d, WWW-Authenticate %q, body %s; want 401", resp.StatusCode, resp.Header.Get("WWW-Authenticate"), body)
			}
		})
	}
}

// A failure to ask is no refusal: it is told as such, says nothing of the
// cluster, and is not remembered.
func TestReviewsThatFail(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	api.put(t, readyOn(newSandbox("s", "alice"), newAgent(t, "pod")))
	s := newStack(t, api, nil)
	c := s.connect(eras[1], "alice", "s")
	api.failReviews.Store(true)
	if got := text(t, bash(t, c, "true")); got != "sandbox exec failed: callers can't be authorized at the moment; try again" {
		t.Errorf("text %q, want it to say that the caller can't be authorized", got)
	}
	resp, body := s.do(http.MethodDelete, "/sessions/s", "bob", nil, nil)
	if resp.StatusCode != 503 || strings.Contains(body, "etcd") {
		t.Errorf("status %d %s, want 503 with a generic body", resp.StatusCode, body)
	}
	api.failReviews.Store(false)
	if r := bash(t, c, "true"); r.IsError {
		t.Errorf("the next call failed too: %s", text(t, r))
	}
}

// Design §6: the hot path asks the API server nothing.
func TestLiveCallsAskTheAPIServerNothing(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	c := l.client(eras[1])
	bash(t, c, "first")
	creates, reads, deletes, reviews := l.api.counts()
	for range 10 {
		bash(t, c, "next")
	}
	if a, b, c, d := l.api.counts(); a != creates || b != reads || c != deletes || d != reviews {
		t.Errorf("10 live calls cost %d creates, %d reads, %d deletes and %d reviews, want none", a-creates, b-reads, c-deletes, d-reviews)
	}
}

// R35: neither command nor output nor path nor token is in any log.
func TestLogsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.agent.artifacts[strings.Repeat("cd", 16)] = fakeArtifact{"secret-path.txt", "text/plain", []byte("secret-bytes")}
	c := l.client(eras[0])
	bash(t, c, "echo secret-command")
	process := inBackground(t, c, "serve secret-command")
	call(t, c, "process_input", object{"process_id": process, "input": "secret-input"})
	call(t, c, "process_output", object{"process_id": process})
	call(t, c, "process_output", object{"process_id": "secret-process"})
	call(t, c, "process_signal", object{"process_id": process, "signal": "secret-signal"})
	call(t, c, "process_list", object{})
	l.agent.put("secret-file", "secret-content")
	call(t, c, "read_file", object{"path": "secret-file"})
	call(t, c, "read_file", object{"path": "secret-missing"})
	call(t, c, "write_file", object{"path": "secret-new", "content": "secret-content"})
	call(t, c, "edit_file", object{"path": "secret-file", "edits": []object{{"old": "secret-content", "new": "secret-new"}}})
	call(t, c, "list_files", object{"glob": "secret-*"})
	call(t, c, "export_artifact", map[string]any{"path": "secret-path.txt"})
	call(t, c, "export_artifact", map[string]any{"path": "secret-path-missing"})
	if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "secret-tool-name"}); err == nil {
		t.Error("an unknown tool was called")
	}
	if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "artifact://berth/sandboxes.s." + strings.Repeat("cd", 16)}); err != nil {
		t.Error(err)
	}
	l.do(http.MethodDelete, "/sessions/secret_id", "alice", nil, nil)
	l.do(http.MethodGet, "/secret-route", "secret-token", nil, nil)
	log := l.log.String()
	for _, secret := range []string{"secret-", "secret_", strings.Repeat("cd", 16), process} {
		if i := strings.Index(log, secret); i >= 0 {
			t.Errorf("the log holds %q: ...%s", secret, log[max(0, i-100):min(len(log), i+50)])
		}
	}
	for _, want := range []string{`"caller":"alice"`, `"tool":"bash"`, `"tool":"export_artifact"`, `"tool":"process_output"`, `"tool":"process_input"`, `"tool":"process_signal"`, `"tool":"process_list"`, `"tool":"read_file"`, `"tool":"write_file"`, `"tool":"edit_file"`, `"tool":"list_files"`, `"outBytes":14`, `"session":"s"`, `"code":"ok"`, `"code":"not_found"`, `"status":401`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s", want)
		}
	}
}
