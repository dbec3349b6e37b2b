package httpapi

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/artifact"
	"github.com/berth-dev/berth/sandbox-agent/token"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// statusOf is docs/agent.md's table of errors, but for those that no request
// alone brings about.
var statusOf = map[string]int{
	wire.CodeBadRequest: 400, wire.CodeIDInUse: 400, wire.CodeUnauthorized: 401, wire.CodeForbidden: 403,
	wire.CodeOutsideWorkspace: 403, wire.CodeNotFound: 404, wire.CodeMethodNotAllowed: 405, wire.CodeNotAcceptable: 406,
	wire.CodeSessionRequired: 409, wire.CodeSessionBound: 409, wire.CodeQuiesced: 410, wire.CodeTooLarge: 413,
	wire.CodeUnsupportedMedia: 415, wire.CodeNotRegular: 422, wire.CodeTooManyArtifacts: 429, wire.CodeTooManyProcesses: 429,
}

// serve sends r and checks what holds for every answer: no panic, no status that
// isn't documented, an error is JSON with its code, and what ran is what a
// request that was answered with a result spelled out.
func serve(t *testing.T, s *Server, sh *fakeShell, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	before := len(sh.ran)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	switch {
	case w.Code == http.StatusRequestedRangeNotSatisfiable: // net/http's own
	case w.Code >= 400:
		var e wire.ErrorBody
		d := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(&e); err != nil || e.Error.Message == "" || statusOf[e.Error.Code] != w.Code {
			t.Errorf("%d with the body %q, %v", w.Code, w.Body, err)
		}
	case w.Code != 200 && w.Code != 201 && w.Code != 204 && w.Code != 206:
		t.Errorf("status %d", w.Code)
	}
	if len(sh.ran) > before && w.Code != http.StatusOK {
		t.Errorf("%d for what ran", w.Code)
	}
	sh.check(t, before)
	return w
}

// check holds the commands from one on against their bounds.
func (f *fakeShell) check(t *testing.T, from int) {
	t.Helper()
	for _, c := range f.ran[from:] {
		if c.Text == "" || strings.ContainsRune(c.Text+c.Cwd, 0) ||
			c.Timeout <= 0 || c.Timeout > wire.MaxCommandTimeout*time.Second ||
			c.OutputBytes <= 0 || c.OutputBytes > wire.MaxOutputBytes {
			t.Errorf("ran %+v", c)
		}
		for _, kv := range c.Env {
			if name, _, ok := strings.Cut(kv, "="); !ok || !wire.ValidEnvName(name) || strings.HasPrefix(name, wire.EnvPrefix) {
				t.Errorf("ran with %q in its environment", kv)
			}
		}
	}
}

// servers returns a maker of servers that share an empty workspace.
func servers(f *testing.F) func(gate Gate) (*Server, *fakeShell) {
	f.Helper()
	dir := f.TempDir()
	store, err := artifact.NewStore(dir, []string{dir}, artifact.SystemClock{})
	if err != nil {
		f.Fatal(err)
	}
	return func(gate Gate) (*Server, *fakeShell) {
		sh := &fakeShell{}
		s := New(sh, store, gate, slog.New(slog.DiscardHandler))
		s.BindLocally()
		return s, sh
	}
}

// post is a request with a JSON body.
func post(method, path string, body []byte) *http.Request {
	r := httptest.NewRequest(method, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", contentJSON)
	return r
}

// FuzzRequest sends what net/http makes of raw bytes.
func FuzzRequest(f *testing.F) {
	server := servers(f)
	for _, seed := range []string{
		"GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST /v1/exec HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 18\r\n\r\n{\"command\":\"true\"}",
		"POST /v1/exec HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"POST /v1/exec?x HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\nContent-Length: 0\r\n\r\n",
		"DELETE /v1/exec/%2e%2e HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /v1/artifacts/00000000000000000000000000000000 HTTP/1.1\r\nHost: a\r\nRange: bytes=-1\r\n\r\n",
		"PUT http://b/v1/session HTTP/1.1\r\nHost: a\r\nContent-Type: application/json; charset=x\r\nContent-Length: 11\r\n\r\n{\"uid\":\"a\"}",
		"POST /v1/quiesce HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"idle_ms\":0}",
		"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
		"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n",
		"GET //v1//health/../exec HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, bound bool) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return
		}
		s, sh := server(anyone{})
		if !bound {
			s.session = session{}
		}
		serve(t, s, sh, r)
		if len(sh.ran) > 0 && !bound {
			t.Error("ran without a session")
		}
	})
}

// FuzzExec: what runs is the request's, and nothing else is taken.
func FuzzExec(f *testing.F) {
	server := servers(f)
	for _, seed := range []string{
		`{"command":"true"}`, `{"command":"a","timeout":1e9,"max_output_bytes":-1}`, `{"command":"a"}{}`, `{"command":""}`,
		`{"command":"a\u0000"}`, `{"command":"a","id":".."}`, `{"command":"a","id":"x","cwd":"/usr","env":[{"name":"A","value":"b"}],"stdin":"\ud800"}`,
		`{"command":"a","env":[{"name":"BERTH_X","value":""}]}`, `{"command":"a","timeout":-1e308}`, `{"Command":"a"}`, `null`, `[]`, "{\"command\":\"\xff\"}",
		`{"command":"a","timeout":1e999}`, `{"command":"a","max_output_bytes":9223372036854775808}`, `{"command":"a","no_log":true}`,
	} {
		f.Add([]byte(seed), "")
	}
	f.Add([]byte(`{"command":"a"}`), wire.FramesType)
	f.Add([]byte(`{"command":"a"}`), "text/html;q=0.9, */*;q=0.1")
	f.Fuzz(func(t *testing.T, body []byte, accept string) {
		s, sh := server(anyone{})
		r := post(http.MethodPost, wire.ExecPath, body)
		r.Header["Accept"] = []string{accept}
		w := serve(t, s, sh, r)
		if (w.Code == http.StatusOK) != (len(sh.ran) == 1) {
			t.Errorf("%d %s, ran %v", w.Code, w.Body, sh.ran)
		}
		if len(sh.ran) == 1 {
			var asked struct{ Command string }
			if err := json.Unmarshal(body, &asked); err != nil || asked.Command != sh.ran[0].Text {
				t.Errorf("asked for %q, ran %q, %v", asked.Command, sh.ran[0].Text, err)
			}
		}
	})
}

// FuzzSession: a session is bound with limits that hold, or not at all.
func FuzzSession(f *testing.F) {
	server := servers(f)
	for _, seed := range []string{
		`{"uid":"a","limits":{}}`, `{"uid":"local","limits":{"output_bytes":1,"command_timeout_max":5}}`, `{"uid":""}`,
		`{"uid":"a","env":[{"name":"A","value":"\u0000"}]}`, `{"uid":"a","limits":{"command_timeout_default":9,"command_timeout_max":5}}`,
		`{"uid":"a","limits":{"log_bytes":-1}}`, `{"uid":"a","limits":{"output_bytes":4194305}}`, `{"uid":"a","background_is_activity":true}`,
		`{"uid":"a","limits":{"artifact_bytes":9223372036854775807,"command_timeout_max":9223372036854775807}}`,
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, bound bool) {
		s, sh := server(anyone{})
		if !bound {
			s.session = session{}
		}
		w := serve(t, s, sh, post(http.MethodPut, wire.SessionPath, body))
		if !bound && s.session.isBound() != (w.Code == http.StatusNoContent) {
			t.Errorf("%d, bound %v", w.Code, s.session.isBound())
		}
		if !s.session.isBound() {
			return
		}
		if l := s.session.current(); l.CommandTimeoutDefault <= 0 || l.CommandTimeoutDefault > l.CommandTimeoutMax ||
			l.OutputBytes <= 0 || l.OutputBytes > wire.MaxOutputBytes || l.ArtifactBytes <= 0 || l.LogBytes <= 0 {
			t.Errorf("bound with %+v", l)
		}
		if got := command(wire.ExecRequest{Command: "a"}, s.session.current()); got.Timeout <= 0 {
			t.Errorf("a command may take %v", got.Timeout)
		}
	})
}

// FuzzSmallBodies: the other routes that take one.
func FuzzSmallBodies(f *testing.F) {
	server := servers(f)
	f.Add(`{"idle_ms":0}`, "../../etc/passwd")
	f.Add(`{"idle_ms":-1}`, "/file")
	f.Add(`{"idle_ms":9223372036854775807}`, "link/file")
	f.Add(`{}`, "a\x00b")
	f.Fuzz(func(t *testing.T, quiesce, path string) {
		s, sh := server(anyone{})
		body, err := json.Marshal(wire.ExportRequest{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if w := serve(t, s, sh, post(http.MethodPost, wire.ArtifactsPath, body)); w.Code == http.StatusCreated {
			t.Errorf("exported %q from an empty workspace", path)
		}
		serve(t, s, sh, post(http.MethodPost, wire.QuiescePath, []byte(quiesce)))
		w := serve(t, s, sh, post(http.MethodPost, wire.ExecPath, []byte(`{"command":"true"}`)))
		if ran := len(sh.ran) > 0; ran != (w.Code == http.StatusOK) || ran == s.activity.quiesced {
			t.Errorf("quiesced %v, and then %d, ran %v", s.activity.quiesced, w.Code, sh.ran)
		}
	})
}

// FuzzRoute: whatever the path, no id but a command's or artifact's does anything.
func FuzzRoute(f *testing.F) {
	server := servers(f)
	for _, path := range []string{"/v1/exec/x", "/v1/exec/", "/v1/exec/a/b", "/v1/artifacts/..", "/v1/activity", "/V1/health", "", "*", "/v1/exec\x00", "/v1/health/"} {
		for _, method := range []string{http.MethodGet, http.MethodDelete, "DELETE ", ""} {
			f.Add(method, path, "")
		}
		f.Add(http.MethodGet, path, "a=b")
	}
	f.Fuzz(func(t *testing.T, method, path, query string) {
		s, sh := server(anyone{})
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Method, r.URL.Path, r.URL.RawQuery = method, path, query
		w := serve(t, s, sh, r)
		if len(sh.ran) > 0 || w.Code == http.StatusNoContent || w.Code == http.StatusCreated {
			t.Errorf("%q %q: %d, ran %v", method, path, w.Code, sh.ran)
		}
	})
}

// FuzzRange: a part of an artifact is that part.
func FuzzRange(f *testing.F) {
	const content = "0123456789abcdef"
	for _, seed := range []string{"bytes=0-", "bytes=-3", "bytes=2-5", "bytes=99-", "bytes=0-0,2-3", "bytes=5-2", "lines=1", "bytes=-0", "bytes=9223372036854775807-"} {
		f.Add(seed, "", "")
	}
	f.Add("bytes=1-2", `"x"`, `W/"x"`)
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte(content), 0o644); err != nil {
		f.Fatal(err)
	}
	store, err := artifact.NewStore(dir, []string{dir}, artifact.SystemClock{})
	if err != nil {
		f.Fatal(err)
	}
	sh := &fakeShell{}
	s := New(sh, store, anyone{}, slog.New(slog.DiscardHandler))
	s.BindLocally()
	taken, err := store.Take(f.Context(), artifact.Request{Path: "file", Limit: 1 << 20, Total: 1 << 20})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, requested, ifRange, ifNoneMatch string) {
		r := httptest.NewRequest(http.MethodGet, wire.ArtifactsPath+"/"+taken.ID, nil)
		for name, value := range map[string]string{"Range": requested, "If-Range": ifRange, "If-None-Match": ifNoneMatch} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		body := w.Body.String()
		switch w.Code {
		case http.StatusOK:
			if body != content {
				t.Errorf("the whole is %q", body)
			}
		case http.StatusPartialContent:
			if part, _, multiple := strings.Cut(w.Header().Get("Content-Type"), ";"); multiple && part == "multipart/byteranges" {
				return
			}
			var from, to, size int
			if _, err := fmt.Sscanf(w.Header().Get("Content-Range"), "bytes %d-%d/%d", &from, &to, &size); err != nil ||
				size != len(content) || body != content[from:to+1] || w.Header().Get("Content-Length") != strconv.Itoa(len(body)) {
				t.Errorf("%q gave %q as %q, %v", requested, body, w.Header(), err)
			}
		case http.StatusNotModified, http.StatusRequestedRangeNotSatisfiable, http.StatusPreconditionFailed:
		default:
			t.Errorf("%d %s", w.Code, body)
		}
	})
}

// FuzzToken: no header but one with a token that was signed opens anything.
func FuzzToken(f *testing.F) {
	server := servers(f)
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		f.Fatal(err)
	}
	jwk := fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":%q}]}`, base64.RawURLEncoding.EncodeToString(public))
	keys, err := token.ParseKeys([]byte(jwk))
	if err != nil {
		f.Fatal(err)
	}
	compact := func(header, claims string) string {
		text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
		return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(private, []byte(text)))
	}
	now := time.Now().Unix()
	good := compact(`{"alg":"EdDSA","kid":"k"}`, fmt.Sprintf(`{"aud":"ns/uid","htm":"POST","htu":"/v1/exec","iat":%d,"exp":%d,"jti":"00000000000000000000000000000000"}`, now, now+60))
	for _, seed := range []string{
		"Bearer " + good + "x", "bearer " + good, "Bearer  " + good, "Bearer " + good + " ", "Basic YTpi", "Bearer ", "Bearer a.b.c",
		"Bearer " + compact(`{"alg":"none","kid":"k"}`, `{}`), "Bearer " + strings.Repeat("a.", 4000), "",
		"Bearer " + compact(`{"alg":"EdDSA","kid":"k"}`, fmt.Sprintf(`{"aud":"ns/other","htm":"POST","htu":"/v1/exec","iat":%d,"exp":%d,"jti":"00000000000000000000000000000000"}`, now, now+60)),
	} {
		f.Add(seed, "")
		f.Add(seed, "Bearer "+good)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		gate := Signed{Verifier: token.NewVerifier(token.Audience("ns", "uid"), keys, time.Now)}
		s, sh := server(gate)
		r := post(http.MethodPost, wire.ExecPath, []byte(`{"command":"true"}`))
		if r.Header["Authorization"] = []string{first}; second != "" {
			r.Header["Authorization"] = []string{first, second}
		}
		w := serve(t, s, sh, r)
		if admitted := first == "Bearer "+good && second == ""; (w.Code == http.StatusUnauthorized) == admitted {
			t.Errorf("%d for %q, %q", w.Code, first, second)
		}
	})
}

// FuzzLocal: by hand, no request that a web page can make is served.
func FuzzLocal(f *testing.F) {
	server := servers(f)
	f.Add("localhost:8090", "", "", contentJSON)
	f.Add("evil.example", "http://localhost", "cross-site", "text/plain")
	f.Add("[::1]", "null", "same-origin", "application/json; charset=utf-8")
	f.Add("127.0.0.1.evil.example:80", "http://127.0.0.1@evil.example", "", "application/x-www-form-urlencoded")
	f.Fuzz(func(t *testing.T, host, origin, site, kind string) {
		s, sh := server(Local{})
		r := httptest.NewRequest(http.MethodPost, wire.ExecPath, strings.NewReader(`{"command":"true"}`))
		r.Host = host
		for name, value := range map[string]string{"Origin": origin, "Sec-Fetch-Site": site, "Content-Type": kind} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := serve(t, s, sh, r)
		if w.Code == http.StatusOK && (!loopbackHost(host) || site == "cross-site" || !strings.HasPrefix(strings.ToLower(strings.TrimSpace(kind)), contentJSON)) {
			t.Errorf("served Host %q, Origin %q, Sec-Fetch-Site %q, Content-Type %q", host, origin, site, kind)
		}
	})
}

// FuzzBodyThatBreaksOff: whatever part of a body arrives, nothing of it runs.
func FuzzBodyThatBreaksOff(f *testing.F) {
	server := servers(f)
	f.Add([]byte(`{"command":"true"}`), 5)
	f.Add([]byte(`{"command":"true"}`), 18)
	f.Fuzz(func(t *testing.T, body []byte, at int) {
		s, sh := server(anyone{})
		part := body[:min(max(at, 0), len(body))]
		r := httptest.NewRequest(http.MethodPost, wire.ExecPath, io.MultiReader(bytes.NewReader(part), broken{}))
		r.Header.Set("Content-Type", contentJSON)
		if w := serve(t, s, sh, r); w.Code != http.StatusBadRequest && w.Code != http.StatusRequestEntityTooLarge || len(sh.ran) > 0 {
			t.Errorf("%d, ran %v", w.Code, sh.ran)
		}
	})
}

// broken is a connection that is gone.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("connection reset") }
