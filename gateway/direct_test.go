package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// teach sends a call of a tool that runs nothing, after which the gateway takes
// calls in the same form past the MCP SDK.
func (l *live) teach(era, tool string) {
	l.t.Helper()
	body := message(era, "tools/call", `"name":"`+tool+`","arguments":{"no such argument":1}`)
	resp, answer := l.do(http.MethodPost, "/mcp", "alice", strings.NewReader(body), func(r *http.Request) {
		toolHeaders(era, "s")(r)
		r.Header.Set("Mcp-Name", tool)
	})
	if wentDirect(resp) || !strings.Contains(answer, "invalid arguments") {
		l.t.Fatalf("the first call of its form was answered %s: %s", resp.Status, answer)
	}
}

// wentDirect tells whether a small event came past the SDK, which flushes each.
func wentDirect(resp *http.Response) bool {
	return resp.Header.Get("Content-Type") == "text/event-stream" && resp.ContentLength >= 0
}

// What the SDK refuses, or answers in another way, it still does when the gateway
// has learnt the form of calls.
func TestUnusualCallsStayWithTheSDK(t *testing.T) {
	t.Parallel()
	era := eras[1]
	usual := bashBody(era, "echo hi")
	replaced := func(old, by string) func(*http.Request) string {
		if !strings.Contains(usual, old) {
			t.Fatalf("no %s in %s", old, usual)
		}
		return func(*http.Request) string { return strings.Replace(usual, old, by, 1) }
	}
	header := func(name string, values ...string) func(*http.Request) string {
		return func(r *http.Request) string {
			r.Header.Del(name)
			for _, v := range values {
				r.Header.Add(name, v)
			}
			return usual
		}
	}
	for name, change := range map[string]func(*http.Request) string{
		"another tool's name in the header":  header("Mcp-Name", "process_list"),
		"no name in the header":              header("Mcp-Name"),
		"two names in the header":            header("Mcp-Name", "bash", "bash"),
		"no method in the header":            header("Mcp-Method"),
		"another method in the header":       header("Mcp-Method", "tools/list"),
		"no version in the header":           header("Mcp-Protocol-Version"),
		"an older version in the header":     header("Mcp-Protocol-Version", eras[0]),
		"a Last-Event-ID":                    header("Last-Event-ID", "1"),
		"an Accept without event streams":    header("Accept", "application/json"),
		"another content type":               header("Content-Type", "text/plain"),
		"another tool's name in the body":    replaced(`"bash"`, `"process_list"`),
		"an unknown tool's name in the body": replaced(`"bash"`, `"fly"`),
		"another method in the body":         replaced(`tools/call`, `tools/list`),
		"another version of JSON-RPC":        replaced(`"2.0"`, `"1.0"`),
		"no id":                              replaced(`"id":1,`, ``),
		"a null id":                          replaced(`"id":1`, `"id":null`),
		"a fractional id":                    replaced(`"id":1`, `"id":1.5`),
		"a huge id":                          replaced(`"id":1`, `"id":123456789012345678901`),
		"an object as id":                    replaced(`"id":1`, `"id":{}`),
		"an id with an escape":               replaced(`"id":1`, `"id":"\u0061"`),
		"another member":                     replaced(`"id":1`, `"id":1,"x":1`),
		"another parameter":                  replaced(`"name"`, `"x":1,"name"`),
		"upper case":                         replaced(`"method"`, `"Method"`),
		"no arguments":                       replaced(`"arguments":{"command":"echo hi"},`, ``),
		"null as arguments":                  replaced(`{"command":"echo hi"}`, `null`),
		"a list as arguments":                replaced(`{"command":"echo hi"}`, `["echo hi"]`),
		"another version in the body":        replaced(era+`"`, eras[0]+`"`),
		"no capabilities":                    replaced(`,"io.modelcontextprotocol/clientCapabilities":{}`, ``),
		"capabilities of another type":       replaced(`clientCapabilities":{}`, `clientCapabilities":[]`),
		"a level of logs":                    replaced(`clientCapabilities":{}`, `clientCapabilities":{},"io.modelcontextprotocol/logLevel":"debug"`),
		"a batch":                            func(*http.Request) string { return "[" + usual + "]" },
		"_meta twice, once as a list":        replaced(`"_meta":{`, `"_meta":[],"_meta":{`),
		"two versions of JSON-RPC":           replaced(`"jsonrpc":"2.0"`, `"jsonrpc":1,"jsonrpc":"2.0"`),
		"two ids":                            replaced(`"id":1`, `"id":2,"id":1`),
		"arguments nested too deep":          replaced(`"echo hi"`, strings.Repeat("[", 1000)+strings.Repeat("]", 1000)),
		"a number too large for a float64":   replaced(`"echo hi"`, `"echo hi","timeout":1e400`),
		"a number of very many digits":       replaced(`"echo hi"`, `"echo hi","timeout":`+strings.Repeat("9", 400)),
		"white space":                        func(*http.Request) string { return " " + usual + "\n" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want string
			for _, taught := range []bool{false, true} {
				l := newLive(t)
				if taught {
					l.teach(era, "bash")
				}
				r, err := http.NewRequest(http.MethodPost, l.url, nil)
				if err != nil {
					t.Fatal(err)
				}
				toolHeaders(era, "s")(r)
				body := change(r)
				resp, answer := l.do(http.MethodPost, "/mcp", "alice", strings.NewReader(body), func(sent *http.Request) {
					for k, v := range r.Header {
						sent.Header[k] = v
					}
				})
				got := resp.Status + "\n" + resp.Header.Get("Content-Type") + "\n" + answer
				if taught {
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("the answer of a gateway that knows the form (-of one that doesn't +of one that does):\n%s", diff)
					}
				}
				want = got
			}
		})
	}
}

// A call with a progress token is the SDK's, however often it came.
func TestCallsWithAProgressTokenAreNotTakenPastTheSDK(t *testing.T) {
	t.Parallel()
	era := eras[1]
	l := newLive(t)
	l.agent.stream = func(f frames, _ *http.Request, _ client.ExecRequest) {
		f.stdout("step\n")
		f.result(client.ExecResult{Stdout: "step\n", StdoutBytes: 5})
	}
	for range 3 {
		resp, _ := l.do(http.MethodPost, "/mcp", "alice", strings.NewReader(progressBody(era, `"token"`, "make")), toolHeaders(era, "s"))
		if wentDirect(resp) {
			t.Error("a call with a progress token went past the SDK, which alone tells of progress")
		}
	}
}

// Of a _meta that is there twice the SDK takes both together. Neither alone is a
// form that it has passed.
func TestTwoMetasTeachNoForm(t *testing.T) {
	t.Parallel()
	era := eras[1]
	l := newLive(t)
	usual := bashBody(era, "true")
	const odd = `"_meta":{"odd":1}}}`
	twice := strings.TrimSuffix(usual, "}}") + "," + odd
	alone := usual[:strings.Index(usual, `"_meta"`)] + odd
	for _, body := range []string{twice, alone} {
		resp, answer := l.do(http.MethodPost, "/mcp", "alice", strings.NewReader(body), toolHeaders(era, "s"))
		if refused := resp.StatusCode == http.StatusBadRequest; refused != (body == alone) {
			t.Errorf("%s\nwas answered %s: %s", body, resp.Status, answer)
		}
	}
}

// What is remembered of forms is bounded: 4 KiB each, 256 of them.
func TestLargeFormsAreNotRemembered(t *testing.T) {
	t.Parallel()
	era := eras[1]
	l := newLive(t)
	headers := toolHeaders(era, "s")
	for size, direct := range map[int]bool{1 << 10: true, 4 << 10: false} {
		name := strings.Repeat("x", size)
		body := strings.Replace(bashBody(era, "true"), `"_meta":{`, `"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"`+name+`","version":"1"},`, 1)
		for i := range 2 {
			resp, answer := l.do(http.MethodPost, "/mcp", "alice", strings.NewReader(body), headers)
			if got, want := wentDirect(resp), direct && i == 1; got != want {
				t.Errorf("call %d with a name of %d bytes went past the SDK: %t, want %t: %s", i, size, got, want, answer)
			}
		}
	}
}

// R20 for a call that goes past the SDK: a disconnect ends the command.
func TestDisconnectEndsADirectCall(t *testing.T) {
	t.Parallel()
	era := eras[1]
	l := newLive(t)
	l.teach(era, "bash")
	began, ended := make(chan struct{}), make(chan struct{})
	l.agent.exec = func(_ http.ResponseWriter, r *http.Request, _ client.ExecRequest) {
		close(began)
		<-r.Context().Done()
		close(ended)
	}
	ctx, disconnect := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/mcp", strings.NewReader(bashBody(era, "sleep 60")))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer alice")
	toolHeaders(era, "s")(r)
	failed := make(chan error, 1)
	go func() {
		resp, err := http.DefaultClient.Do(r)
		if err == nil {
			resp.Body.Close()
		}
		failed <- err
	}()
	<-began
	disconnect()
	<-ended
	if err := <-failed; err == nil {
		t.Error("a call that was given up had an answer")
	}
}

// Each call has its audit line, past the SDK too.
func TestDirectCallsAreAudited(t *testing.T) {
	t.Parallel()
	era := eras[1]
	l := newLive(t)
	l.teach(era, "bash")
	resp, answer := l.do(http.MethodPost, "/mcp", "alice", strings.NewReader(bashBody(era, "false <&>")), toolHeaders(era, "s"))
	if !wentDirect(resp) {
		t.Fatalf("the call did not go past the SDK: %s", answer)
	}
	l.log.await(`"tool":"bash","namespace":"sandboxes","session":"s","inBytes":23`)
}
