package gateway_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// What a request's headers say of the session must be the task's, by each method: a
// task of another namespace is as unknown as one that never was, also to who may use
// both.
func TestHeadersMustBeTheTasks(t *testing.T) {
	t.Parallel()
	p := newTaskParty(t)
	id := p.a.bashTask(`{"command":"sleep 100"}`)["taskId"].(string)
	namespace, _, _ := strings.Cut(id, ".")
	for name, tc := range map[string]struct {
		header, value string
		known         bool
	}{
		"its session":       {"X-Session-ID", "s", true},
		"another session":   {"X-Session-ID", "t", false},
		"its namespace":     {"X-Sandbox-Namespace", namespace, true},
		"another namespace": {"X-Sandbox-Namespace", "elsewhere", false},
		"any template":      {"X-Sandbox-Template", "python", true}, // nothing is made
	} {
		t.Run(name, func(t *testing.T) {
			for _, method := range []string{"tasks/get", "tasks/update", "subscriptions/listen", "tasks/cancel"} {
				if method == "tasks/cancel" && tc.known {
					continue
				}
				if known := p.b.knowsTask(t, method, id, tc.header, tc.value); known != tc.known {
					t.Errorf("%s: known %v, want %v", method, known, tc.known)
				}
			}
		})
	}
	if m := p.a.task("alice", "tasks/get", id); m.Result["status"] != "working" {
		t.Errorf("after that: %+v", m)
	}
	if m := p.a.task("alice", "tasks/cancel", id); m.Error != nil {
		t.Errorf("cancel: %+v", m)
	}
}

// knowsTask asks about a task with one header more.
func (s *stack) knowsTask(t *testing.T, method, id, header, value string) bool {
	t.Helper()
	params := fmt.Sprintf(`"taskId":%q`, id)
	if method == "subscriptions/listen" {
		params = fmt.Sprintf(`"notifications":{"taskIds":[%q]}`, id)
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":{%s,"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{"extensions":%s}}}}`,
		method, params, eras[1], tasksExtension)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	mcpHeaders(r, eras[1])
	r.Header.Set("Authorization", "Bearer alice")
	r.Header.Set("Mcp-Method", method)
	if method != "subscriptions/listen" {
		r.Header.Set("Mcp-Name", id)
	}
	r.Header.Set(header, value)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	m, ok := s.read(bufio.NewReader(resp.Body))
	switch {
	case !ok:
		t.Fatalf("%s: no answer", method)
	case method == "subscriptions/listen":
		agreed, _ := m.Params["notifications"].(map[string]any)["taskIds"].([]any)
		return len(agreed) == 1
	}
	return m.Error == nil
}
