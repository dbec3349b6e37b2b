package gateway_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// R19: readiness goes first, running calls finish, new ones find the port closed.
func TestDrain(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	fa := newAgent(t, "pod")
	began, finish := make(chan struct{}), make(chan struct{})
	fa.exec = func(w http.ResponseWriter, _ *http.Request, req client.ExecRequest) {
		if req.Command == "long" {
			close(began)
			<-finish
		}
		agentJSON(w, client.ExecResult{Stdout: "finished"})
	}
	api.put(t, readyOn(newSandbox("s", "alice"), fa))
	s := newStack(t, api, func(o *gateway.Options) { o.DrainDelay = time.Second })
	s.log.await("Began to serve")
	if got := get(t, s.health+"/readyz"); got != "200 ok\n" {
		t.Fatalf("/readyz: %s", got)
	}
	c := s.connect(eras[1], "alice", "s")
	answer := make(chan *mcp.CallToolResult)
	go func() { answer <- bash(t, c, "long") }()
	<-began
	s.stop()
	s.log.await("Began to drain")
	if got := get(t, s.health+"/readyz"); got != "503 draining\n" {
		t.Errorf("/readyz while draining: %s", got)
	}
	if got := get(t, s.health+"/livez"); got != "200 ok\n" {
		t.Errorf("/livez while draining: %s", got)
	}
	if r := bash(t, s.connect(eras[1], "alice", "s"), "still"); r.IsError {
		t.Errorf("a call before the port closed: %s", text(t, r))
	}
	<-s.closed
	if conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://")); err == nil {
		t.Error("the port is still open")
		conn.Close()
	}
	close(finish)
	if r := <-answer; r.IsError || !strings.Contains(text(t, r), "finished") {
		t.Errorf("the running call got %s", text(t, r))
	}
	if err := <-s.done; err != nil {
		t.Errorf("Serve returned %v, want nil", err)
	}
}

// R19: a client that keeps its connection is told to leave before that is closed,
// in a short answer and in one that streams.
func TestDrainingGatewayEndsConnections(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	api.put(t, readyOn(newSandbox("s", "alice"), newAgent(t, "pod")))
	s := newStack(t, api, func(o *gateway.Options) { o.DrainDelay = time.Second })
	ask := func() (streamed, refused bool) {
		tool, body := s.do(http.MethodPost, "/mcp", "alice", strings.NewReader(bashBody(eras[1], "true")), toolHeaders(eras[1], "s"))
		if tool.StatusCode != http.StatusOK {
			t.Errorf("bash: %d %s", tool.StatusCode, body)
		}
		other, _ := s.do(http.MethodDelete, "/sessions/Wrong", "alice", nil, nil)
		return tool.Close, other.Close
	}
	if streamed, refused := ask(); streamed || refused {
		t.Errorf("connections that end before the drain: %v, %v; want them to be kept", streamed, refused)
	}
	s.stop()
	s.log.await("Began to drain")
	if streamed, refused := ask(); !streamed || !refused {
		t.Errorf("connections that end: %v, %v; want both", streamed, refused)
	}
}

// R19: what outlasts the grace is cancelled, in the pod too.
func TestDrainEndsWhatOutlastsIt(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	fa := newAgent(t, "pod")
	began, ended := make(chan struct{}), make(chan struct{})
	fa.exec = func(_ http.ResponseWriter, r *http.Request, _ client.ExecRequest) {
		close(began)
		hang(r)
		close(ended)
	}
	api.put(t, readyOn(newSandbox("s", "alice"), fa))
	s := newStack(t, api, func(o *gateway.Options) { o.ShutdownTimeout = 50 * time.Millisecond })
	c := s.connect(eras[1], "alice", "s")
	told := make(chan *mcp.CallToolResult)
	go func() { told <- bash(t, c, "sleep 1000") }()
	<-began
	s.stop()
	<-ended
	if got := text(t, <-told); got != "sandbox exec failed: the gateway shut down while the call ran: what it had begun was stopped" {
		t.Errorf("the call was told %q", got)
	}
	if err := <-s.done; err != nil {
		t.Errorf("Serve returned %v, want nil", err)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, body)
}
