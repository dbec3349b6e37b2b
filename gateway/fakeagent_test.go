package gateway_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// fakeAgent is the agent of one pod, over real HTTP: it checks a token's claims,
// wants to be bound, and answers commands as a test tells it.
type fakeAgent struct {
	t        testing.TB
	audience string
	ip       string

	// exec answers a command; the default answers with the command itself.
	exec func(ctx http.ResponseWriter, r *http.Request, req client.ExecRequest)
	// stream answers a command whose output is wanted as it happens; the default
	// writes the command itself.
	stream func(f frames, r *http.Request, req client.ExecRequest)
	// upload answers an upload; the default takes it.
	upload func(w http.ResponseWriter, r *http.Request)
	// before, if set, sees every request first and may answer it.
	before func(w http.ResponseWriter, r *http.Request) (done bool)

	mu        sync.Mutex
	session   *client.Session
	artifacts map[string]fakeArtifact
	commands  []client.ExecRequest
	processes []*fakeProcess
	files     map[string]fakeFile
	asked     []string // about files
	exports   []client.ExportRequest
	exported  *client.Artifact // what an export gives, if set
	requests  atomic.Int64
	server    *httptest.Server
}

type fakeArtifact struct {
	name, mimeType string
	data           []byte
}

// agentPort is where every fake agent listens, each at a loopback address of its
// own, as pods do.
var agentPort = sync.OnceValue(func() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
})

var agentAddress atomic.Uint32

// newAgent starts an agent for the pod of that UID in the namespace sandboxes.
func newAgent(t testing.TB, podUID string) *fakeAgent {
	t.Helper()
	n := agentAddress.Add(1)
	a := &fakeAgent{
		t:         t,
		audience:  "sandboxes/" + podUID,
		ip:        fmt.Sprintf("127.1.%d.%d", n/250, n%250+1),
		artifacts: map[string]fakeArtifact{},
		files:     map[string]fakeFile{},
	}
	a.start()
	t.Cleanup(a.stop)
	return a
}

func (a *fakeAgent) start() {
	l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", a.ip, agentPort()))
	if err != nil {
		a.t.Fatalf("listen as an agent: %v", err)
	}
	a.server = httptest.NewUnstartedServer(a)
	a.server.Listener.Close()
	a.server.Listener = l
	a.server.Start()
}

func (a *fakeAgent) stop() {
	a.server.CloseClientConnections()
	a.server.Close()
}

func (a *fakeAgent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.requests.Add(1)
	if a.before != nil && a.before(w, r) {
		return
	}
	if got := tokenClaims(r); got != a.audience+" "+r.Method+" "+r.URL.Path {
		agentError(w, http.StatusUnauthorized, "unauthorized", "not for this pod")
		return
	}
	if r.Method == http.MethodPut && r.URL.Path == "/v1/session" {
		a.bind(w, r)
		return
	}
	a.mu.Lock()
	bound := a.session != nil
	a.mu.Unlock()
	if !bound {
		agentError(w, http.StatusConflict, "session_required", "bind a session first")
		return
	}
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/v1/exec":
		a.run(w, r)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/files":
		a.receive(w, r)
	case slices.Contains([]string{"/v1/files", "/v1/file", "/v1/edit", "/v1/list"}, r.URL.Path):
		a.file(w, r)
	case r.URL.Path == "/v1/processes" || strings.HasPrefix(r.URL.Path, "/v1/processes/"):
		a.process(w, r)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/artifacts":
		a.export(w, r)
	case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/artifacts/"):
		a.read(w, r, strings.TrimPrefix(r.URL.Path, "/v1/artifacts/"))
	default:
		agentError(w, http.StatusNotFound, "not_found", "no such route")
	}
}

func (a *fakeAgent) bind(w http.ResponseWriter, r *http.Request) {
	var s client.Session
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
		agentError(w, http.StatusBadRequest, "bad_request", err.Error())
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.session = &s
	w.WriteHeader(http.StatusNoContent)
}

func (a *fakeAgent) run(w http.ResponseWriter, r *http.Request) {
	var req client.ExecRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		agentError(w, http.StatusBadRequest, "bad_request", err.Error())
		return
	}
	a.mu.Lock()
	a.commands = append(a.commands, req)
	a.mu.Unlock()
	result := client.ExecResult{Stdout: req.Command + "\n", DurationMS: 1, StdoutBytes: int64(len(req.Command) + 1)}
	switch wantsFrames := r.Header.Get("Accept") == framesType; {
	case wantsFrames && a.stream != nil:
		a.stream(frames{w}, r, req)
	case wantsFrames:
		frames{w}.stdout(result.Stdout)
		frames{w}.result(result)
	case a.exec != nil:
		a.exec(w, r, req)
	default:
		agentJSON(w, result)
	}
}

func (a *fakeAgent) export(w http.ResponseWriter, r *http.Request) {
	var req client.ExportRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		agentError(w, http.StatusBadRequest, "bad_request", err.Error())
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.exports = append(a.exports, req)
	if a.exported != nil {
		agentJSON(w, a.exported)
		return
	}
	for id, f := range a.artifacts {
		if f.name == req.Path {
			agentJSON(w, client.Artifact{ID: id, Name: f.name, MIMEType: f.mimeType, Size: int64(len(f.data)), ExpiresIn: 300})
			return
		}
	}
	agentError(w, http.StatusNotFound, "not_found", "no such file")
}

func (a *fakeAgent) read(w http.ResponseWriter, r *http.Request, id string) {
	a.mu.Lock()
	f, ok := a.artifacts[id]
	a.mu.Unlock()
	if !ok {
		agentError(w, http.StatusNotFound, "not_found", "no such artifact")
		return
	}
	w.Header().Set("Content-Type", f.mimeType)
	w.Header().Set("ETag", `"`+id+`"`)
	w.Header().Set("Content-Disposition", `attachment; filename="`+f.name+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.data))
}

// ran is the commands that were begun.
func (a *fakeAgent) ran() []client.ExecRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]client.ExecRequest(nil), a.commands...)
}

// tokenClaims is audience, method and path of a request's token.
func tokenClaims(r *http.Request) string {
	parts := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var c struct{ Aud, Htm, Htu string }
	if json.Unmarshal(payload, &c) != nil {
		return ""
	}
	return c.Aud + " " + c.Htm + " " + c.Htu
}

func agentJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(err)
	}
}

func agentError(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"code":%q,"message":%q}}`, code, message)
}

// hang blocks an agent's handler until its caller has gone. The server notices
// that only once the body has been read.
func hang(r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return // it has gone already
	}
	<-r.Context().Done()
}
