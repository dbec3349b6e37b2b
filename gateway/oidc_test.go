package gateway_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/berth-dev/berth/gateway"
	"github.com/berth-dev/berth/test/issuer"
)

// newIssuer is an OpenID provider on loopback.
func newIssuer(t testing.TB) (url string, token func(subject string) string) {
	t.Helper()
	i, err := issuer.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Stop)
	return i.URL, func(subject string) string {
		signed, err := i.Token(subject, "developers", "system:masters")
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
}

// withIssuer takes an issuer's tokens beside the API server's.
func withIssuer(url string) func(*gateway.Options) {
	return func(o *gateway.Options) {
		o.Auth, o.OIDC.Issuer, o.OIDC.Audience = "tokenreview,oidc", url, issuer.Audience
	}
}

// A session belongs to a subject of an issuer: nobody of the same name elsewhere,
// and no service account, is that.
func TestSessionsBelongToIssuerAndSubject(t *testing.T) {
	t.Parallel()
	url, token := newIssuer(t)
	const builder = "system:serviceaccount:team-a:builder"
	for _, subject := range []string{"alice", builder, "oidc:" + url + "#alice"} {
		t.Run(subject, func(t *testing.T) {
			t.Parallel()
			api := newAPI(t)
			asked := make(chan authorizationv1.SubjectAccessReviewSpec, 10)
			api.allowed = func(s authorizationv1.SubjectAccessReviewSpec) bool { asked <- s; return true }
			owner := "oidc:" + url + "#" + subject
			api.put(t, readyOn(newSandbox("theirs", owner), newAgent(t, "pod-1")))
			api.put(t, readyOn(newSandbox("others", subject), newAgent(t, "pod-2")))
			s := newStack(t, api, withIssuer(url))
			expect(t, "its own session", outcome(t, bash(t, s.connect(eras[1], token(subject), "theirs"), "true")), "ok")
			if spec := <-asked; spec.User != owner || strings.Join(spec.Groups, " ") != "developers" || spec.ResourceAttributes.Namespace != "sandboxes" {
				t.Errorf("asked about %+v, want %s of developers, in sandboxes", spec, owner)
			}
			expect(t, "one of a cluster's user of that name", outcome(t, bash(t, s.connect(eras[1], token(subject), "others"), "true")), "session not available")
			expect(t, "the cluster's alice", outcome(t, bash(t, s.connect(eras[1], "alice", "theirs"), "true")), "session not available")
		})
	}
}

// The gateway starts without its issuer, and is ready: others' tokens are taken.
func TestIssuerIsDown(t *testing.T) {
	t.Parallel()
	url, token := newIssuer(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	api := newAPI(t)
	api.put(t, readyOn(newSandbox("s", "alice"), newAgent(t, "pod")))
	s := newStack(t, api, withIssuer(gone.URL))
	s.log.await("Began to serve")
	if got := get(t, s.health+"/readyz"); got != "200 ok\n" {
		t.Errorf("/readyz: %s", got)
	}
	expect(t, "the cluster's alice", outcome(t, bash(t, s.connect(eras[1], "alice", "s"), "true")), "ok")
	if resp, body := s.do(http.MethodDelete, "/sessions/s", token("alice"), nil, nil); resp.StatusCode != 401 {
		t.Errorf("a token of another issuer: %d %s, want 401", resp.StatusCode, body)
	}
	forged := strings.Split(token("alice"), ".")
	claims, err := base64.RawURLEncoding.DecodeString(forged[1])
	if err != nil {
		t.Fatal(err)
	}
	forged[1] = base64.RawURLEncoding.EncodeToString([]byte(strings.ReplaceAll(string(claims), url, gone.URL)))
	resp, body := s.do(http.MethodDelete, "/sessions/s", strings.Join(forged, "."), nil, nil)
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || strings.Contains(body, gone.URL) {
		t.Errorf("a token of the issuer: %d %s, want 503 that says nothing of it", resp.StatusCode, body)
	}
}

// RFC 9728: where clients learn whose tokens they need.
func TestResourceMetadata(t *testing.T) {
	t.Parallel()
	url, _ := newIssuer(t)
	const path = "/.well-known/oauth-protected-resource"
	tests := map[string]struct {
		change   func(*gateway.Options)
		host     string
		method   string
		path     string
		status   int
		resource string // "" if there is no document
		servers  []string
	}{
		"of the gateway":       {func(o *gateway.Options) { o.PublicURL = "https://berth.example" }, "", "GET", path, 200, "https://berth.example", []string{url}},
		"of its MCP":           {func(o *gateway.Options) { o.PublicURL = "https://berth.example" }, "", "GET", path + "/mcp", 200, "https://berth.example/mcp", []string{url}},
		"by a host of its own": {func(o *gateway.Options) { o.AllowedHosts = []string{"berth.example"} }, "berth.example:8080", "GET", path + "/mcp", 200, "http://berth.example:8080/mcp", []string{url}},
		"by any host":          {func(*gateway.Options) {}, "evil.example", "GET", path + "/mcp", 404, "", nil},
		"by a forged host":     {func(o *gateway.Options) { o.AllowedHosts = []string{"berth.example"} }, "evil.example", "GET", path + "/mcp", 403, "", nil},
		"by a host with a lie": {func(o *gateway.Options) { o.AllowedHosts = []string{"berth.example"} }, "berth.example:x,y", "GET", path + "/mcp", 404, "", nil},
		"of another resource":  {func(o *gateway.Options) { o.PublicURL = "https://berth.example" }, "", "GET", path + "/sessions", 401, "", nil},
		"posted":               {func(o *gateway.Options) { o.PublicURL = "https://berth.example" }, "", "POST", path, 405, "", nil},
		"of a cluster's tokens": {func(o *gateway.Options) {
			o.PublicURL, o.Auth, o.OIDC.Issuer = "https://berth.example", "tokenreview", ""
		}, "", "GET", path, 200, "https://berth.example", nil},
		"of no tokens": {func(o *gateway.Options) { o.Auth, o.OIDC.Issuer, o.Listen = "none", "", "127.0.0.1:8080" }, "", "GET", path, 404, "", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t, newAPI(t), func(o *gateway.Options) {
				withIssuer(url)(o)
				tc.change(o)
			})
			resp, body := s.do(tc.method, tc.path, "", nil, func(r *http.Request) {
				if tc.host != "" {
					r.Host = tc.host
				}
			})
			var document struct {
				Resource string   `json:"resource"`
				Servers  []string `json:"authorization_servers"`
			}
			if err := json.Unmarshal([]byte(body), &document); err != nil {
				t.Fatalf("%d %s: %v", resp.StatusCode, body, err)
			}
			if resp.StatusCode != tc.status || document.Resource != tc.resource || strings.Join(document.Servers, " ") != strings.Join(tc.servers, " ") {
				t.Errorf("%d %s, want %d, resource %q, servers %v", resp.StatusCode, body, tc.status, tc.resource, tc.servers)
			}
		})
	}
}

// RFC 6750: a request without a token is told where to get one; one with a wrong
// token also that it was wrong.
func TestChallenge(t *testing.T) {
	t.Parallel()
	url, token := newIssuer(t)
	s := newStack(t, newAPI(t), func(o *gateway.Options) {
		withIssuer(url)(o)
		o.PublicURL = "https://berth.example"
	})
	const (
		plain   = `Bearer realm="berth"`
		invalid = `, error="invalid_token", error_description="the token is not one for this gateway, or has ended"`
		where   = `, resource_metadata="https://berth.example/.well-known/oauth-protected-resource/mcp"`
	)
	for name, tc := range map[string]struct {
		authorization []string
		want          string
	}{
		"no token":         {nil, plain + where},
		"unknown token":    {[]string{"Bearer mallory"}, plain + invalid + where},
		"forged signature": {[]string{"Bearer " + token("alice") + "x"}, plain + invalid + where},
		"oversize":         {[]string{"Bearer " + strings.Repeat("a", 16<<10+1)}, plain + invalid + where},
		"another scheme":   {[]string{"Basic YTpi"}, plain + invalid + where},
	} {
		resp, body := s.do(http.MethodPost, "/mcp", "", strings.NewReader(`{}`), func(r *http.Request) {
			if tc.authorization != nil {
				r.Header["Authorization"] = tc.authorization
			}
		})
		if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != 401 || got != tc.want {
			t.Errorf("%s: %d %q, want 401 %q; body %s", name, resp.StatusCode, got, tc.want, body)
		}
	}
}
