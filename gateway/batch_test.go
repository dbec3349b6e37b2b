package gateway_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// batch is n messages in one body.
func batch(n int, message func(i int) string) string {
	messages := make([]string, n)
	for i := range n {
		messages[i] = message(i)
	}
	return "[" + strings.Join(messages, ",") + "]"
}

// R21: one request can't be tens of thousands of calls at the same time. What is
// over the limit is refused as a whole, before any of it runs.
func TestBatchIsBounded(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	call := func(i int) string {
		return strings.Replace(bashBody("2025-03-26", "true"), `"id":1`, fmt.Sprintf(`"id":%d`, i), 1)
	}
	for name, body := range map[string]string{
		"one too many":  batch(65, call),
		"with a space":  " \n" + batch(65, call),
		"20,000":        batch(20_000, call),
		"no messages":   batch(200_000, func(int) string { return "1" }),
		"never closed":  "[" + strings.Repeat(call(1)+",", 70),
		"malformed":     "[" + call(1) + ",",
		"nested":        strings.Repeat("[", 100_000),
		"not separated": "[" + call(1) + call(2) + "]",
	} {
		resp, answer := l.do(http.MethodPost, "/mcp", "alice", strings.NewReader(body), toolHeaders("2025-03-26", "s"))
		if resp.StatusCode != http.StatusRequestEntityTooLarge && resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: status %d %.300s, want 413 or 400", name, resp.StatusCode, answer)
		}
	}
	if n := len(l.agent.ran()); n != 0 {
		t.Errorf("%d commands were run of refused batches", n)
	}
	resp, answer := l.do(http.MethodPost, "/mcp", "alice", strings.NewReader(batch(64, call)), toolHeaders("2025-03-26", "s"))
	if n := strings.Count(answer, `"exit_code":0`); resp.StatusCode != http.StatusOK || n != 64 {
		t.Errorf("64 messages: status %d, %d results; want all of them", resp.StatusCode, n)
	}
}
