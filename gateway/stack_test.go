package gateway_test

import (
	"bytes"
	"context"
	"flag"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway"
	agent "github.com/berth-dev/berth/sandbox-agent/client"
)

// eras are the protocol versions that every behaviour on the wire is held in.
var eras = []string{"2025-11-25", "2026-07-28"}

// patience bounds what a test waits for; nothing that works comes near it.
const patience = 20 * time.Second

// stack is a gateway that serves on loopback.
type stack struct {
	t      testing.TB
	api    *fakeAPI
	url    string
	health string
	log    *lockedBuffer
	// stop begins the shutdown; done gives what Run returned.
	stop context.CancelFunc
	done chan error
	// closed is closed with the port.
	closed chan struct{}
}

// newStack starts a gateway against api, with options changed by change.
func newStack(t testing.TB, api *fakeAPI, change func(*gateway.Options)) *stack {
	t.Helper()
	return newStackFor(t, api, agentOptions(), change)
}

// newStackFor starts a gateway whose agents are not the fake ones.
func newStackFor(t testing.TB, api *fakeAPI, agents agent.Options, change func(*gateway.Options)) *stack {
	t.Helper()
	o := defaults()
	if change != nil {
		change(&o)
	}
	s := &stack{t: t, api: api, log: newLog(), done: make(chan error, 1), closed: make(chan struct{})}
	g, err := gateway.New(o, api, agents, "test", slog.New(slog.NewJSONHandler(s.log, nil)))
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	main, side := loopback(t), loopback(t)
	s.url, s.health = "http://"+main.Addr().String(), "http://"+side.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() {
		s.done <- g.Serve(ctx, &closing{Listener: main, closed: s.closed}, side)
		close(s.done)
	}()
	t.Cleanup(func() {
		stop()
		for range s.done { // its value, unless the test has it, and its end
		}
		if t.Failed() {
			t.Logf("log of the gateway:\n%s", s.log)
		}
	})
	select {
	case <-api.watching:
	case err := <-s.done:
		t.Fatalf("Serve ended: %v", err)
	case <-time.After(patience):
		t.Fatal("the gateway does not watch Sandboxes")
	}
	return s
}

// defaults are the flags' defaults, without the wait for a load balancer.
func defaults() gateway.Options {
	var o gateway.Options
	o.BindFlags(flag.NewFlagSet("", flag.ContinueOnError))
	o.DrainDelay = 0
	return o
}

func agentOptions() agent.Options {
	return agent.Options{Port: agentPort(), AllowLoopback: true, DialTimeout: time.Second}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func loopback(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// closing is a listener that tells when it was closed.
type closing struct {
	net.Listener
	once   sync.Once
	closed chan struct{}
}

func (c *closing) Close() error {
	err := c.Listener.Close()
	c.once.Do(func() { close(c.closed) })
	return err
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu      sync.Mutex
	written sync.Cond
	b       bytes.Buffer
}

func newLog() *lockedBuffer {
	l := &lockedBuffer{}
	l.written.L = &l.mu
	return l
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.written.Broadcast()
	return l.b.Write(p)
}

// await waits until the log holds text.
func (l *lockedBuffer) await(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !bytes.Contains(l.b.Bytes(), []byte(text)) {
		l.written.Wait()
	}
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// headers adds headers to every request of a client.
type headers struct {
	http.Header
	base http.RoundTripper
}

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for k, v := range h.Header {
		r.Header[k] = v
	}
	return h.base.RoundTrip(r)
}

// connect returns a client of the SDK, of one era, that calls as token and in
// session; either is left out if empty.
func (s *stack) connect(era, token, session string) *mcp.ClientSession {
	s.t.Helper()
	h := http.Header{}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	if session != "" {
		h.Set("X-Session-ID", session)
	}
	return s.connectWith(era, h)
}

func (s *stack) connectWith(era string, h http.Header) *mcp.ClientSession {
	s.t.Helper()
	return s.connectWithOptions(era, h, nil)
}

func (s *stack) connectWithOptions(era string, h http.Header, o *mcp.ClientOptions) *mcp.ClientSession {
	s.t.Helper()
	transport := &http.Transport{}
	s.t.Cleanup(transport.CloseIdleConnections)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o)
	session, err := client.Connect(s.t.Context(), &mcp.StreamableClientTransport{
		Endpoint:             s.url + "/mcp",
		HTTPClient:           &http.Client{Transport: headers{h, transport}},
		DisableStandaloneSSE: true,
		MaxRetries:           -1,
	}, &mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		s.t.Fatalf("connect (%s): %v", era, err)
	}
	s.t.Cleanup(func() { session.Close() })
	return session
}

// call calls a tool and fails the test on a protocol error.
func call(t *testing.T, c *mcp.ClientSession, tool string, arguments any) *mcp.CallToolResult {
	t.Helper()
	result, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("tools/call %s: protocol error %v", tool, err)
	}
	return result
}

func bash(t *testing.T, c *mcp.ClientSession, command string) *mcp.CallToolResult {
	t.Helper()
	return call(t, c, "bash", map[string]any{"command": command})
}

// text is a result's text.
func text(t *testing.T, r *mcp.CallToolResult) string {
	t.Helper()
	for _, c := range r.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			return withoutRequest(c.Text)
		}
	}
	t.Fatalf("result without text: %+v", r)
	return ""
}

var mention = regexp.MustCompile(` \(request [0-9a-f]{16}\)$`)

// withoutRequest is a failure's text without the id of its request.
func withoutRequest(text string) string { return mention.ReplaceAllString(text, "") }

// do sends a plain HTTP request.
func (s *stack) do(method, path, token string, body io.Reader, change func(*http.Request)) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if change != nil {
		change(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%s %s: read answer: %v", method, path, err)
	}
	return resp, string(data)
}
