package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/gateway"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// shortWait keeps calls for sessions that nobody makes ready from waiting.
func shortWait(o *gateway.Options) { o.ReadyTimeout = 200 * time.Millisecond }

// mcpHeaders makes a request one of MCP.
func mcpHeaders(r *http.Request, era string) {
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", era)
}

// bashBody is a tools/call of bash as each era's clients send it.
func bashBody(era, command string) string {
	meta := ""
	if era >= "2026-07-28" {
		meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + era + `","io.modelcontextprotocol/clientCapabilities":{}}`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"bash","arguments":{"command":%q}%s}}`, command, meta)
}

func toolHeaders(era, session string) func(*http.Request) {
	return func(r *http.Request) {
		mcpHeaders(r, era)
		r.Header.Set("X-Session-ID", session)
		if era >= "2026-07-28" {
			r.Header.Set("Mcp-Method", "tools/call")
			r.Header.Set("Mcp-Name", "bash")
		}
	}
}

// R21: a body that is too large is 413, whether its length is announced or not,
// and the gateway goes on.
func TestBodyTooLarge(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	big := bashBody(eras[0], strings.Repeat("x", 5<<20))
	for name, body := range map[string]io.Reader{
		"announced":   strings.NewReader(big),
		"unannounced": io.MultiReader(strings.NewReader(big)),
	} {
		resp, answer := l.do(http.MethodPost, "/mcp", "alice", body, toolHeaders(eras[0], "s"))
		if resp.StatusCode != 413 || !strings.Contains(answer, "4194304 bytes") {
			t.Errorf("%s: status %d %s, want 413 with the limit", name, resp.StatusCode, answer)
		}
	}
	if r := bash(t, l.client(eras[1]), "true"); r.IsError {
		t.Error(text(t, r))
	}
}

// Origin and Host: what keeps a web page from speaking to the gateway.
func TestHostAndOrigin(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		host, origin string
		status       int
	}{
		"no origin":                {"", "", 200},
		"page of this machine":     {"", "http://localhost:3000", 200},
		"page of elsewhere":        {"", "https://evil.example", 403},
		"null origin":              {"", "null", 403},
		"allowed page":             {"", "https://console.example", 200},
		"allowed page, other port": {"", "https://console.example:8443", 403},
		"rebound name":             {"evil.example", "", 403},
		"allowed name":             {"gateway.example:8080", "", 200},
		"loopback name":            {"localhost:1", "", 200},
		"loopback address":         {"[::1]:1", "", 200},
	}
	s := newStack(t, newAPI(t), func(o *gateway.Options) {
		o.Listen = "127.0.0.1:0"
		o.AllowedHosts = []string{"gateway.example"}
		o.AllowedOrigins = []string{"https://console.example"}
	})
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, body := s.do(http.MethodPost, "/mcp", "alice", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), func(r *http.Request) {
				mcpHeaders(r, eras[0])
				if tc.host != "" {
					r.Host = tc.host
				}
				if tc.origin != "" {
					r.Header.Set("Origin", tc.origin)
				}
			})
			if resp.StatusCode != tc.status {
				t.Errorf("status %d %s, want %d", resp.StatusCode, body, tc.status)
			}
		})
	}
}

// R21: a silent command keeps its connection by comments, and its result comes
// as an event, whatever status the SDK would have chosen.
func TestSilentCallIsKeptAlive(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		api := newAPI(t)
		fa := newAgent(t, "pod")
		finish := make(chan struct{})
		fa.exec = func(w http.ResponseWriter, _ *http.Request, _ client.ExecRequest) {
			<-finish
			agentJSON(w, client.ExecResult{Stdout: "late"})
		}
		api.put(t, readyOn(newSandbox("s", "alice"), fa))
		s := newStack(t, api, func(o *gateway.Options) { o.FlushAfter, o.KeepAlive = time.Millisecond, time.Millisecond })
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/mcp", strings.NewReader(bashBody(era, "sleep 320")))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer alice")
		toolHeaders(era, "s")(r)
		resp, err := http.DefaultClient.Do(r) // returns with the headers: the command still runs
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != "text/event-stream" || resp.Header.Get("X-Accel-Buffering") != "no" {
			t.Errorf("status %d, headers %v; want an unbuffered event stream", resp.StatusCode, resp.Header)
		}
		lines := bufio.NewScanner(resp.Body)
		comments := 0
		for lines.Scan() {
			switch line := lines.Text(); {
			case line == ": keep-alive":
				comments++
				if comments == 3 {
					close(finish)
				}
			case strings.HasPrefix(line, "data: "):
				if !strings.Contains(line, "late") {
					t.Errorf("event %s, want the result", line)
				}
			}
		}
		if comments < 3 || lines.Err() != nil {
			t.Errorf("%d comments, error %v; want at least 3 and a clean end", comments, lines.Err())
		}
	})
}

// Trap: on 2026-07-28 an error of some codes has an HTTP status of its own. When
// the headers have left as those of a stream, it must come as an event.
func TestLateErrorComesAsAnEvent(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	fa := newAgent(t, "pod")
	silent := make(chan struct{})
	fa.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			<-silent
		}
		return false
	}
	api.put(t, readyOn(newSandbox("s", "alice"), fa))
	s := newStack(t, api, func(o *gateway.Options) { o.FlushAfter, o.KeepAlive = time.Millisecond, time.Millisecond })
	uri := "artifact://berth/sandboxes.s." + strings.Repeat("0", 32)
	body := `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"` + uri + `","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	mcpHeaders(r, eras[1])
	r.Header.Set("Authorization", "Bearer alice")
	r.Header.Set("Mcp-Method", "resources/read")
	r.Header.Set("Mcp-Name", uri)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	close(silent)
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if want := `data: {"jsonrpc":"2.0","id":7,"error":{"code":-32602`; resp.StatusCode != 200 || !strings.Contains(string(answer), want) {
		t.Errorf("status %d, answer %s; want an event with %s", resp.StatusCode, answer, want)
	}
}

// R21: a client that has gone takes its command along; others are not touched.
func TestClientGone(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		l := newLive(t)
		began, ended := make(chan struct{}), make(chan struct{})
		l.agent.exec = func(w http.ResponseWriter, r *http.Request, req client.ExecRequest) {
			if req.Command == "true" {
				agentJSON(w, client.ExecResult{})
				return
			}
			close(began)
			hang(r)
			close(ended)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/mcp", strings.NewReader(bashBody(era, "sleep 1000")))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer alice")
		toolHeaders(era, "s")(r)
		go func() {
			if resp, err := http.DefaultClient.Do(r); err == nil {
				resp.Body.Close()
			}
		}()
		<-began
		cancel()
		<-ended
		if r := bash(t, l.client(era), "true"); r.IsError {
			t.Error(text(t, r))
		}
	})
}

// Cancellation of the older era: a notification on a connection of its own.
func TestCancelledNotification(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	began, ended, finish := make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})
	l.agent.exec = func(w http.ResponseWriter, r *http.Request, _ client.ExecRequest) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil { // or its end isn't noticed
			t.Error(err)
		}
		began <- struct{}{}
		select {
		case <-finish:
			agentJSON(w, client.ExecResult{Stdout: "finished"})
		case <-r.Context().Done():
			ended <- struct{}{}
		}
	}
	begin := func() (answer chan string) {
		answer = make(chan string, 1)
		go func() {
			_, body := l.do(http.MethodPost, "/mcp", "alice", strings.NewReader(bashBody(eras[0], "sleep 1000")), toolHeaders(eras[0], "s"))
			answer <- body
		}()
		<-began
		return answer
	}
	notify := func(token, session, id string) {
		resp, body := l.do(http.MethodPost, "/mcp", token, strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`), toolHeaders(eras[0], session))
		if resp.StatusCode != 202 {
			t.Errorf("notification: %d %s", resp.StatusCode, body)
		}
	}
	answer := begin()
	notify("bob", "s", "1")
	notify("alice", "other", "1")
	notify("alice", "s", `"1"`)
	notify("alice", "s", "2")
	// A call is ended before its notification is answered: it would not finish.
	select {
	case finish <- struct{}{}:
	case <-ended:
	}
	if got := <-answer; !strings.Contains(got, "finished") {
		t.Errorf("answer %s: another caller's, session's or call's notification ended the command", got)
	}
	answer = begin()
	notify("alice", "s", "1")
	<-ended
	if got := <-answer; !strings.Contains(got, "the call was cancelled") {
		t.Errorf("answer %s, want it to say that the call was cancelled", got)
	}
}

// R19: a port in use is a clear error.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	l := loopback(t)
	defer l.Close()
	for flag, set := range map[string]func(*gateway.Options){
		"listen":        func(o *gateway.Options) { o.Listen, o.HealthListen = l.Addr().String(), "127.0.0.1:0" },
		"health-listen": func(o *gateway.Options) { o.Listen, o.HealthListen = "127.0.0.1:0", l.Addr().String() },
	} {
		o := defaults()
		set(&o)
		g, err := gateway.New(o, newAPI(t), agentOptions(), "test", discard())
		if err != nil {
			t.Fatal(err)
		}
		err = g.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "listen on "+l.Addr().String()) || !strings.Contains(err.Error(), "address already in use") {
			t.Errorf("--%s: error %v, want it to name the address", flag, err)
		}
	}
}

// R21: a panic is one failed call.
func TestPanicIsOneFailedCall(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		api := newAPI(t)
		var panics atomic.Bool
		api.onRead = func() {
			if panics.Load() {
				panic("a bug")
			}
		}
		api.put(t, readyOn(newSandbox("s", "alice"), newAgent(t, "pod")))
		s := newStack(t, api, func(o *gateway.Options) { o.CreateSandboxes = false })
		c := s.connect(era, "alice", "absent")
		panics.Store(true)
		if got := text(t, bash(t, c, "true")); got != "internal error: the call was given up" {
			t.Errorf("text %q", got)
		}
		s.log.await(`"code":"panic"`)
		panics.Store(false)
		if r := bash(t, s.connect(era, "alice", "s"), "true"); r.IsError {
			t.Error(text(t, r))
		}
	})
}

// Batches, which 2025-03-26 has, are several calls of one request.
func TestBatch(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	one, two := bashBody("2025-03-26", "one"), strings.Replace(bashBody("2025-03-26", "two"), `"id":1`, `"id":2`, 1)
	resp, answer := l.do(http.MethodPost, "/mcp", "alice", strings.NewReader("["+one+","+two+"]"), toolHeaders("2025-03-26", "s"))
	if resp.StatusCode != http.StatusOK || !strings.Contains(answer, `one\n`) || !strings.Contains(answer, `two\n`) {
		t.Errorf("status %d, answer %s; want both results", resp.StatusCode, answer)
	}
	if n := len(l.agent.ran()); n != 2 {
		t.Errorf("%d commands were run, want 2", n)
	}
}

// R21: what is larger than 64 KiB is encoded while it is sent; several at a time,
// and with clients that go in the middle.
func TestManyLargeReads(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.agent.session = &client.Session{}
	l.agent.artifacts[artifactID] = fakeArtifact{"f", "application/octet-stream", bytes.Repeat([]byte("0123456789abcde\n"), 512<<10)}
	body := `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"` + artifactOf + "s." + artifactID + `"}}`
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.url+"/mcp", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer alice")
			mcpHeaders(r, eras[0])
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if i%2 == 0 {
				return // goes without reading
			}
			n, err := io.Copy(io.Discard, resp.Body)
			if err != nil || n < 8<<20*4/3 {
				t.Errorf("%d bytes, error %v; want all", n, err)
			}
		})
	}
	all.Wait()
}
