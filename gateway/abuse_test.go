package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Requests of somebody who means harm, byte by byte, each with its exact answer.
// None reaches an agent or makes the gateway ask for a Sandbox, and the gateway
// goes on. What an agent may do to the gateway is TestHostileAgentAnswers,
// TestLyingStreams and the tests of package client.
func TestAbusiveRequests(t *testing.T) {
	t.Parallel()
	const (
		invalidID = `invalid X-Session-ID header: it must be 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit`
		missingID = `missing X-Session-ID header: send one with 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit`
		noValue   = `{"error":{"code":"bad_body","message":"the request's body is not one JSON value"}}` + "\n"
		noRoute   = `{"error":{"code":"not_found","message":"no such route: MCP is at /mcp"}}` + "\n"
		notUTF8   = `{"error":{"code":"bad_body","message":"the request's body is not UTF-8"}}` + "\n"
	)
	call := bashBody(eras[0], "whoami")
	with := func(command string) string { return strings.Replace(call, `"whoami"`, command, 1) }
	tests := map[string]struct {
		request string
		status  string
		body    string
	}{
		"10,000 headers":           {post(strings.Repeat("X-A: 1\r\n", 10_000), call), "431 Request Header Fields Too Large", "431 Request Header Fields Too Large"},
		"10,000 other headers":     {post(numbered(10_000), call), "431 Request Header Fields Too Large", "431 Request Header Fields Too Large"},
		"a header of 70 KiB":       {post("X-A: "+strings.Repeat("a", 70<<10)+"\r\n", call), "431 Request Header Fields Too Large", "431 Request Header Fields Too Large"},
		"a first line of 70 KiB":   {"GET /" + strings.Repeat("a", 70<<10) + " HTTP/1.1\r\nHost: h\r\n\r\n", "431 Request Header Fields Too Large", "431 Request Header Fields Too Large"},
		"a NUL in a header":        {post("X-A: \x00\r\n", call), "400 Bad Request", "400 Bad Request"},
		"a space in a name":        {post("X-Session-ID : s\r\n", call), "400 Bad Request: invalid header name", "400 Bad Request: invalid header name"},
		"two lengths":              {post("Content-Length: 1\r\n", call), "400 Bad Request", "400 Bad Request"},
		"a length, and chunks":     {post("Transfer-Encoding: chunked\r\n", call+"\r\n"), "400 Bad Request", `{"error":{"code":"bad_body","message":"the request's body could not be read"}}` + "\n"},
		"an encoding on its way":   {post("Transfer-Encoding: gzip\r\n", call), "501 Not Implemented", "Unsupported transfer encoding"},
		"a negative length":        {"POST /mcp HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", "400 Bad Request", "400 Bad Request"},
		"two hosts":                {post("Host: h\r\n", call), "400 Bad Request", "400 Bad Request"},
		"no HTTP":                  {"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", "400 Bad Request", "400 Bad Request"},
		"HTTP/2, unasked":          {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "401 Unauthorized", `{"error":{"code":"unauthenticated","message":"a bearer token for this gateway is required"}}` + "\n"},
		"a token of another's":     {strings.Replace(post("X-Session-ID: s\r\n", call), "alice", "stranger", 1), "401 Unauthorized", `{"error":{"code":"unauthenticated","message":"the token is not one for this gateway, or has ended"}}` + "\n"},
		"a tunnel to an address":   {"CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: 10.0.0.1:443\r\nAuthorization: Bearer alice\r\n\r\n", "404 Not Found", noRoute},
		"an address to forward to": {"GET http://169.254.169.254/latest HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer alice\r\n\r\n", "404 Not Found", noRoute},

		"two sessions":         {post("X-Session-ID: s\r\nX-Session-ID: s\r\n", call), "400 Bad Request", repeated("X-Session-ID")},
		"two callers":          {post("Authorization: Bearer alice\r\nX-Session-ID: s\r\n", call), "400 Bad Request", repeated("Authorization")},
		"two content types":    {post("Content-Type: text/plain\r\nX-Session-ID: s\r\n", call), "400 Bad Request", repeated("Content-Type")},
		"two eras":             {post("MCP-Protocol-Version: 2026-07-28\r\nX-Session-ID: s\r\n", call), "400 Bad Request", repeated("Mcp-Protocol-Version")},
		"two namespaces":       {post("X-Sandbox-Namespace: a\r\nX-Sandbox-Namespace: b\r\nX-Session-ID: s\r\n", call), "400 Bad Request", repeated("X-Sandbox-Namespace")},
		"two templates":        {post("X-Sandbox-Template: a\r\nX-Sandbox-Template: b\r\nX-Session-ID: s\r\n", call), "400 Bad Request", repeated("X-Sandbox-Template")},
		"two methods":          {post("Mcp-Method: tools/call\r\nMcp-Method: ping\r\nX-Session-ID: s\r\n", call), "400 Bad Request", repeated("Mcp-Method")},
		"two names":            {post("Mcp-Name: bash\r\nMcp-Name: read_file\r\nX-Session-ID: s\r\n", call), "400 Bad Request", repeated("Mcp-Name")},
		"two sessions in one":  {post("X-Session-ID: s, s\r\n", call), "200 OK", toolError(invalidID)},
		"a header in two":      {post("X-Session-ID: s\r\n s\r\n", call), "200 OK", toolError(invalidID)},
		"an address":           {post("X-Session-ID: 127.0.0.1:8080\r\n", call), "200 OK", toolError(invalidID)},
		"a path":               {post("X-Session-ID: ../../secrets\r\n", call), "200 OK", toolError(invalidID)},
		"a session not UTF-8":  {post("X-Session-ID: \xff\r\n", call), "200 OK", toolError(invalidID)},
		"an address, by proxy": {post("X-Forwarded-Host: 10.0.0.1\r\nForwarded: host=10.0.0.1\r\nX-Real-Ip: 10.0.0.1\r\n", call), "200 OK", toolError(missingID)},

		"a body not UTF-8":    {post("X-Session-ID: s\r\n", with("\"\xff\xfe\"")), "400 Bad Request", notUTF8},
		"brackets":            {post("X-Session-ID: s\r\n", strings.Repeat("[", 1_000_000)), "400 Bad Request", noValue},
		"deep arguments":      {post("X-Session-ID: s\r\n", with(strings.Repeat(`{"a":`, 100_000)+"1"+strings.Repeat("}", 100_000))), "400 Bad Request", noValue},
		"less deep arguments": {post("X-Session-ID: s\r\n", with(strings.Repeat("[", 9_000)+strings.Repeat("]", 9_000))), "400 Bad Request", "malformed payload: unmarshaling jsonrpc message: json: exceeded maximum nesting depth of 1000\n"},
		"two values":          {post("X-Session-ID: s\r\n", call+call), "400 Bad Request", noValue},
		"half a value":        {post("X-Session-ID: s\r\n", call[:50]), "400 Bad Request", noValue},
		"a NUL":               {post("X-Session-ID: s\r\n", "\x00"), "400 Bad Request", noValue},
		"a compressed body":   {post("Content-Encoding: gzip\r\nX-Session-ID: s\r\n", "\x1f\x8b\x08\x00"), "400 Bad Request", notUTF8},
		"a form":              {strings.Replace(post("X-Session-ID: s\r\n", call), "application/json", "text/plain", 1), "415 Unsupported Media Type", "Content-Type must be 'application/json'\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLive(t)
			creates, reads, _, _ := l.api.counts()
			resp, body := converse(t, l.url, tc.request)
			if resp.Status != tc.status || body != tc.body {
				t.Errorf("%s %.300q, want %s %q", resp.Status, body, tc.status, tc.body)
			}
			if n := l.agent.requests.Load(); n != 0 {
				t.Errorf("the agent was asked %d times", n)
			}
			if c, r, _, _ := l.api.counts(); c != creates || r != reads {
				t.Errorf("%d Sandboxes created and %d read, want none", c-creates, r-reads)
			}
			if r := bash(t, l.client(eras[1]), "true"); r.IsError {
				t.Errorf("the next call: %s", text(t, r))
			}
		})
	}
}

// A client that lets its headers drip is given up after 10 s, with no answer: it
// has sent no request yet.
func TestDrippingHeadersAreGivenUp(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.log.await("Began to serve")
	conn, err := net.Dial("tcp", strings.TrimPrefix(l.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if _, err := io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: h\r\nX-A: "); err != nil {
		t.Fatal(err)
	}
	drip := time.NewTicker(100 * time.Millisecond)
	go func() {
		for range drip.C {
			if _, err := io.WriteString(conn, "a"); err != nil {
				return
			}
		}
	}()
	answer, err := io.ReadAll(conn)
	if took := time.Since(begun); took < 9*time.Second || took > 15*time.Second || len(answer) != 0 {
		t.Errorf("after %s: %q, %v; want the end of the connection after 10 s", took, answer, err)
	}
	if n := l.agent.requests.Load(); n != 0 {
		t.Errorf("the agent was asked %d times", n)
	}
}

// post is a request of alice's with these header lines more.
func post(lines, body string) string {
	return fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer alice\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: %s\r\nContent-Length: %d\r\n%s\r\n%s", eras[0], len(body), lines, body)
}

// numbered are n headers, each with a name of its own.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "X-%d: 1\r\n", i)
	}
	return b.String()
}

// repeated is the answer to a request that sends a header twice.
func repeated(name string) string {
	return `{"error":{"code":"invalid_header","message":"invalid ` + name + ` header: it must be sent once"}}` + "\n"
}

// toolError is the answer of a tool that was not run.
func toolError(text string) string {
	return `event: message` + "\n" + `data: {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + text + `"}],"isError":true}}` + "\n\n"
}

// converse sends bytes as they are and reads an answer.
func converse(t *testing.T, url, request string) (*http.Response, string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	sent := make(chan struct{})
	go func() { // an answer may come before all has been sent
		defer close(sent)
		_, _ = io.WriteString(conn, request)
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", resp.Status, err)
	}
	conn.Close()
	<-sent
	return resp, string(body)
}
