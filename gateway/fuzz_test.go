package gateway_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/berth-dev/berth/gateway"
)

// FuzzHTTP sends the whole gateway requests that nobody foresaw: none makes it
// panic or answer 500, none without a token gets further than a refusal, and no
// command runs but in the session of the header.
func FuzzHTTP(f *testing.F) {
	for _, era := range eras {
		f.Add("POST", "/mcp", "s", "Mcp-Name", "bash", bashBody(era, "id"), true)
		f.Add("POST", "/mcp", "", "Mcp-Method", "tools/list", message(era, "tools/list", ""), true)
		f.Add("POST", "/mcp", "S", "Accept", "*/*", message(era, "resources/read", `"uri":"`+artifactOf+"s."+artifactID+`?offset=1"`), true)
		f.Add("POST", "/mcp", "s", "Mcp-Protocol-Version", era, "["+bashBody(era, "id")+"]", true)
	}
	f.Add("POST", "/mcp", "s", "Content-Length", "1", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, true)
	f.Add("GET", "/mcp", "s", "Last-Event-Id", "1", "", true)
	f.Add("GET", "/artifacts/sandboxes.s."+artifactID, "", "Range", "bytes=1-2", "", true)
	f.Add("GET", "/artifacts/..%2f..%2fx", "", "Range", "bytes=-", "", true)
	f.Add("POST", "/sessions/s/files?name=a", "s", "Content-Type", "text/plain", "x", true)
	f.Add("DELETE", "/sessions/x", "s", "Origin", "null", "", true)
	f.Add("OPTIONS", "//mcp/../mcp", "s", "X-Sandbox-Namespace", "..", "", false)
	api := newAPI(f)
	api.allowed = func(review authorizationv1.SubjectAccessReviewSpec) bool {
		return review.ResourceAttributes == nil || review.ResourceAttributes.Verb != "delete" // the session stays
	}
	fa := newAgent(f, "pod-1")
	api.put(f, readyOn(newSandbox("s", "alice"), fa))
	s := newStack(f, api, func(o *gateway.Options) {
		shortWait(o)
		o.CreateSandboxes = false
	})
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	f.Cleanup(client.CloseIdleConnections)
	f.Fuzz(func(t *testing.T, method, path, session, name, value, body string, known bool) {
		r, err := http.NewRequestWithContext(t.Context(), method, s.url, strings.NewReader(body))
		if err != nil || method == http.MethodConnect || strings.ContainsAny(path, " \r\n\t\x7f") {
			return // nothing that could be sent
		}
		r.URL.Opaque = "//" + r.URL.Host + "/" + strings.TrimPrefix(path, "/")
		mcpHeaders(r, eras[0])
		if strings.Contains(body, "io.modelcontextprotocol/") {
			mcpHeaders(r, eras[1])
			r.Header.Set("Mcp-Method", "tools/call")
		}
		r.Header.Set("X-Session-ID", session)
		r.Header.Set(name, value)
		r.Header.Del("Authorization")
		if known {
			r.Header.Set("Authorization", "Bearer alice")
		}
		fa.mu.Lock()
		fa.commands = nil
		fa.mu.Unlock()
		resp, err := client.Do(r)
		switch {
		case errors.Is(err, io.EOF):
			t.Fatal("no answer: a handler has panicked")
		case err != nil:
			return // the client won't send it
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("%s: %v", resp.Status, err)
		}
		if resp.StatusCode == http.StatusInternalServerError || strings.Contains(string(answer), "internal error") && !strings.Contains(body+path+session+name+value, "internal error") {
			t.Errorf("%s %s", resp.Status, answer)
		}
		if !known && resp.StatusCode < http.StatusMultipleChoices {
			t.Errorf("%s without a token: %s", resp.Status, answer)
		}
		if got := r.Header.Get("X-Session-ID"); got != "s" && len(fa.ran()) != 0 {
			t.Errorf("a command ran for the session %q", got)
		}
	})
}
