package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/gateway"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// choosing sends a request with headers besides those of its route.
func choosing(h map[string][]string, and func(*http.Request)) func(*http.Request) {
	return func(r *http.Request) {
		if and != nil {
			and(r)
		}
		for name, values := range h {
			r.Header[name] = values
		}
	}
}

// tool calls bash by HTTP and gives the text of its result, or "ok".
func (s *stack) tool(token, session string, h map[string][]string) string {
	s.t.Helper()
	resp, body := s.do(http.MethodPost, "/mcp", token, strings.NewReader(bashBody(eras[1], "true")), choosing(h, toolHeaders(eras[1], session)))
	return outcomeOf(s.t, resp, body)
}

// outcomeOf is what an answer of MCP says: "ok", a failure's text, a protocol
// error's message, or the status and code of an HTTP error.
func outcomeOf(t testing.TB, resp *http.Response, body string) string {
	t.Helper()
	if resp.StatusCode != http.StatusOK {
		return httpOutcome(t, resp, body)
	}
	if _, data, ok := strings.Cut(body, "data: "); ok {
		body = data
	}
	var answer struct {
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
		Error struct{ Message string }
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("answer %s: %v", body, err)
	}
	switch {
	case answer.Error.Message != "":
		return answer.Error.Message
	case answer.Result.IsError:
		return withoutRequest(answer.Result.Content[0].Text)
	default:
		return "ok"
	}
}

// httpOutcome is a status, and the code of an error.
func httpOutcome(t testing.TB, resp *http.Response, body string) string {
	t.Helper()
	if resp.StatusCode < 400 {
		return fmt.Sprint(resp.StatusCode)
	}
	var refused struct{ Error struct{ Code string } }
	if err := json.Unmarshal([]byte(body), &refused); err != nil {
		t.Fatalf("%d %s: %v", resp.StatusCode, body, err)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, refused.Error.Code)
}

// reviews remembers what an API server was asked.
type reviews struct {
	mu  sync.Mutex
	all map[string]bool
}

// allow lets all be allowed but what deny has, each "verb resource namespace/name".
func (r *reviews) allow(deny ...string) func(authorizationv1.SubjectAccessReviewSpec) bool {
	r.all = map[string]bool{}
	return func(s authorizationv1.SubjectAccessReviewSpec) bool {
		a := s.ResourceAttributes
		resource := a.Resource
		if a.Subresource != "" {
			resource += "/" + a.Subresource
		}
		what := fmt.Sprintf("%s %s %s/%s", a.Verb, resource, a.Namespace, a.Name)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all[what] = true
		for _, d := range deny {
			if d == what {
				return false
			}
		}
		return true
	}
}

func (r *reviews) asked(what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[what]
}

// comesUp makes each new Sandbox ready on an agent of its own, in any namespace.
func comesUp(t *testing.T, api *fakeAPI) {
	api.onCreate = func(s *berthv1alpha1.Sandbox) {
		go func() {
			fa := newAgent(t, "pod-"+string(s.UID))
			ready := readyOn(s, fa)
			fa.audience = s.Namespace + "/" + ready.Status.PodUID
			api.setStatus(t, ready)
		}()
	}
}

// Design §4: X-Sandbox-Namespace chooses where the session is, when RBAC lets it, for
// tools, uploads and DELETE.
func TestNamespaceHeader(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	var asked reviews
	api.allowed = asked.allow("create sandboxes/session team-c/s", "delete sandboxes/session team-c/s")
	comesUp(t, api)
	s := newStack(t, api, nil)
	in := func(namespace string) map[string][]string {
		return map[string][]string{"X-Sandbox-Namespace": {namespace}}
	}
	for _, token := range []string{"alice", "builder"} {
		if got := s.tool(token, token, in("team-b")); got != "ok" {
			t.Errorf("%s in team-b: %s", token, got)
		}
		made := api.sandbox(t, "team-b", token)
		if made == nil || made.Spec.Owner != users[token] || !asked.asked("create sandboxes/session team-b/"+token) {
			t.Errorf("%s: made %+v, asked %v; want it in team-b, as its own", token, made, asked.all)
		}
	}
	upload := func(namespace, session string) string {
		resp, body := s.do(http.MethodPost, "/sessions/"+session+"/files?name=f", "alice", strings.NewReader("x"), choosing(in(namespace), nil))
		return httpOutcome(t, resp, body)
	}
	end := func(namespace, session string) string {
		resp, body := s.do(http.MethodDelete, "/sessions/"+session, "alice", nil, choosing(in(namespace), nil))
		return httpOutcome(t, resp, body)
	}
	for what, tc := range map[string]struct{ got, want string }{
		"an upload":               {upload("team-b", "alice"), "201"},
		"an upload without right": {upload("team-c", "s"), "403 forbidden"},
		"a tool without right":    {s.tool("alice", "s", in("team-c")), "sandbox exec failed: not allowed: the caller needs a role that grants this verb on sandboxes/session in the session's namespace"},
		"a DELETE without right":  {end("team-c", "s"), "403 forbidden"},
		"a DELETE elsewhere":      {end("team-d", "alice"), "204"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %s, want %s", what, tc.got, tc.want)
		}
	}
	if api.sandbox(t, "team-c", "s") != nil || api.sandbox(t, "team-b", "alice") == nil {
		t.Error("a session was made without the right, or one of another namespace was deleted")
	}
	if got := end("team-b", "alice"); got != "204" || api.sandbox(t, "team-b", "alice") != nil {
		t.Errorf("DELETE in team-b: %s, and the session is there; want it gone", got)
	}
}

// An artifact's token names its namespace. A header that names another is another's.
func TestArtifactsKeepTheirNamespace(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.agent.session = &client.Session{}
	l.agent.artifacts[artifactID] = fakeArtifact{"f", "text/plain", []byte("x")}
	for namespace, want := range map[string]string{"": "200", "sandboxes": "200", "team-b": "404 not_found"} {
		h := map[string][]string{}
		if namespace != "" {
			h["X-Sandbox-Namespace"] = []string{namespace}
		}
		resp, body := l.do(http.MethodGet, "/artifacts/sandboxes.s."+artifactID, "alice", nil, choosing(h, nil))
		if got := httpOutcome(t, resp, body); got != want {
			t.Errorf("from namespace %q: %s, want %s", namespace, got, want)
		}
	}
}

// Design §2 and §4: X-Sandbox-Template needs verb use, chooses what a new session is
// made from, and must be what a live one was made from.
func TestTemplateHeader(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	var asked reviews
	api.allowed = asked.allow("use sandboxtemplates sandboxes/gpu")
	comesUp(t, api)
	api.put(t, readyOn(newSandbox("bobs", "bob"), newAgent(t, "pod-bob")))
	s := newStack(t, api, nil)
	from := func(template string) map[string][]string {
		return map[string][]string{"X-Sandbox-Template": {template}}
	}
	if got := s.tool("alice", "s", from("python")); got != "ok" {
		t.Fatalf("from python: %s", got)
	}
	if made := api.sandbox(t, "sandboxes", "s"); made == nil || made.Spec.TemplateRef.Name != "python" || !asked.asked("use sandboxtemplates sandboxes/python") {
		t.Errorf("made %+v, asked %v; want it from python, which the caller may use", made, asked.all)
	}
	const conflict = `sandbox exec failed: session "s" was made from template "python", not "node": leave the X-Sandbox-Template header out, or use another session`
	for what, tc := range map[string]struct{ got, want string }{
		"the same again":          {s.tool("alice", "s", from("python")), "ok"},
		"none in particular":      {s.tool("alice", "s", nil), "ok"},
		"another":                 {s.tool("alice", "s", from("node")), conflict},
		"the default":             {s.tool("alice", "s", from("default")), strings.ReplaceAll(conflict, "node", "default")},
		"without right":           {s.tool("alice", "new", from("gpu")), "sandbox exec failed: not allowed: the caller needs a role that grants use on sandboxtemplates of that name in the session's namespace"},
		"the default, new":        {s.tool("alice", "plain", from("default")), "ok"},
		"another's session":       {s.tool("alice", "bobs", from("python")), "sandbox exec failed: session not available"},
		"an upload, another":      {s.sendFile("alice", "s", from("node")), "409 another_template"},
		"an upload, the same":     {s.sendFile("alice", "s", from("python")), "201"},
		"an upload without right": {s.sendFile("alice", "new", from("gpu")), "403 forbidden"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %s, want %s", what, tc.got, tc.want)
		}
	}
	if api.sandbox(t, "sandboxes", "new") != nil || asked.asked("use sandboxtemplates sandboxes/default") {
		t.Errorf("a session was made without the right, or it was asked who may use the default: %v", asked.all)
	}
}

func (s *stack) sendFile(token, session string, h map[string][]string) string {
	s.t.Helper()
	resp, body := s.do(http.MethodPost, "/sessions/"+session+"/files?name=f", token, strings.NewReader("x"), choosing(h, nil))
	return httpOutcome(s.t, resp, body)
}

// A template that can't be asked about is a failure that passes.
func TestTemplateReviewThatFails(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	api.put(t, readyOn(newSandbox("s", "alice"), newAgent(t, "pod")))
	s := newStack(t, api, nil)
	if got := s.tool("alice", "s", nil); got != "ok" {
		t.Fatal(got)
	}
	api.failReviews.Store(true)
	if got := s.tool("alice", "s", map[string][]string{"X-Sandbox-Template": {"python"}}); got != "sandbox exec failed: callers can't be authorized at the moment; try again" {
		t.Errorf("tool: %s", got)
	}
	if got := s.sendFile("alice", "s", map[string][]string{"X-Sandbox-Template": {"python"}}); got != "503 authorization_unavailable" {
		t.Errorf("upload: %s", got)
	}
}

// Headers that can't be right are refused on every route before anybody is asked.
func TestHeadersThatAreRefused(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	api.put(t, readyOn(newSandbox("s", "alice"), newAgent(t, "pod")))
	s := newStack(t, api, func(o *gateway.Options) { o.AllowedHosts = []string{"127.0.0.1"} })
	s.tool("alice", "s", nil)
	creates, reads, deletes, asked := api.counts()
	for name, h := range map[string]map[string][]string{
		"two namespaces":       {"X-Sandbox-Namespace": {"a", "b"}},
		"one namespace twice":  {"X-Sandbox-Namespace": {"sandboxes", "sandboxes"}},
		"two templates":        {"X-Sandbox-Template": {"a", "b"}},
		"no namespace":         {"X-Sandbox-Namespace": {""}},
		"a namespace's path":   {"X-Sandbox-Namespace": {"sandboxes/../kube-system"}},
		"a template of 64":     {"X-Sandbox-Template": {strings.Repeat("a", 64)}},
		"a host for namespace": {"X-Sandbox-Namespace": {"169.254.169.254:80"}},
	} {
		for _, route := range []string{"POST /mcp", "POST /sessions/s/files?name=f", "DELETE /sessions/s", "GET /artifacts/sandboxes.s." + artifactID} {
			method, path, _ := strings.Cut(route, " ")
			var change func(*http.Request)
			body := "x"
			if path == "/mcp" {
				change, body = toolHeaders(eras[0], "s"), bashBody(eras[0], "true")
			}
			resp, answer := s.do(method, path, "alice", strings.NewReader(body), choosing(h, change))
			if got := httpOutcome(t, resp, answer); got != "400 invalid_header" {
				t.Errorf("%s, %s: %s %s, want 400", name, route, got, answer)
			}
		}
	}
	if a, b, c, d := api.counts(); a != creates || b != reads || c != deletes || d != asked {
		t.Errorf("the API server was asked %d, %d, %d, %d times more, want none", a-creates, b-reads, c-deletes, d-asked)
	}
}
