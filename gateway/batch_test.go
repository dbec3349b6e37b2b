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

// A batch that asks for more large artifacts than there is room for gets what
// fits, at once, and leaves room for others.
func TestBatchOfLargeReads(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.agent.session = &client.Session{}
	l.agent.artifacts[artifactID] = fakeArtifact{"f", "application/octet-stream", bytes.Repeat([]byte("0123456789abcde\n"), 512<<10)}
	read := func(i int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":%q}}`, i, artifactOf+"s."+artifactID)
	}
	resp, answer := l.do(http.MethodPost, "/mcp", "alice", strings.NewReader(batch(12, read)), toolHeaders("2025-03-26", "s"))
	blobs, errors := strings.Count(answer, `"blob"`), strings.Count(answer, `"error"`)
	if resp.StatusCode != http.StatusOK || blobs == 0 || errors == 0 || blobs+errors != 12 {
		t.Errorf("status %d, %d results, %d errors; want 12, some of each", resp.StatusCode, blobs, errors)
	}
	if resp, answer := l.do(http.MethodPost, "/mcp", "alice", strings.NewReader(read(1)), toolHeaders("2025-03-26", "s")); resp.StatusCode != http.StatusOK || !strings.Contains(answer, `"blob"`) {
		t.Errorf("the next read: status %d, %.200s", resp.StatusCode, answer)
	}
}

// What follows a message is not ignored: the SDK would run the first of two, and
// whoever looked at the request before may have read the other.
func TestOneMessageOfEachRequest(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	one := bashBody("2025-03-26", "true")
	for name, body := range map[string]string{
		"two":             one + one,
		"two, apart":      one + "\n" + one,
		"a stray bracket": one + "]",
		"after a batch":   "[" + one + "]" + one,
		"cut off":         one[:len(one)-1],
		"no JSON":         "bash",
	} {
		resp, answer := l.do(http.MethodPost, "/mcp", "alice", strings.NewReader(body), toolHeaders("2025-03-26", "s"))
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(answer, "one JSON value") {
			t.Errorf("%s: status %d %.300s, want 400", name, resp.StatusCode, answer)
		}
	}
	if n := len(l.agent.ran()); n != 0 {
		t.Errorf("%d commands were run of refused requests", n)
	}
	if resp, answer := l.do(http.MethodPost, "/mcp", "alice", strings.NewReader(" "+one+" \r\n"), toolHeaders("2025-03-26", "s")); resp.StatusCode != http.StatusOK {
		t.Errorf("with space around: status %d %s", resp.StatusCode, answer)
	}
}
