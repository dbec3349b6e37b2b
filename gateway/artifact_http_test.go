package gateway_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// withHeader sets a header of a request, unless it is empty.
func withHeader(name, value string) func(*http.Request) {
	return func(r *http.Request) {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
}

// R33: over HTTP too, all that can't be read is one answer, byte by byte. Whether a
// session is another's or isn't there takes the same questions: a review, and none
// to the API server or an agent about the session.
func TestHTTPNotFoundIsIndistinguishable(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	api.allowed = func(s authorizationv1.SubjectAccessReviewSpec) bool { return s.ResourceAttributes.Name != "forbidden" }
	mine, bobs, fresh, bare := newAgent(t, "pod-1"), newAgent(t, "pod-2"), newAgent(t, "pod-3"), newAgent(t, "pod-4")
	for _, a := range []*fakeAgent{mine, bobs, bare} {
		a.artifacts[artifactID] = fakeArtifact{"f", "text/plain", []byte("x")}
		a.session = &client.Session{}
	}
	api.put(t, readyOn(newSandbox("s", "alice"), mine))
	api.put(t, readyOn(newSandbox("bobs", "bob"), bobs))
	api.put(t, readyOn(newSandbox("fresh", "alice"), fresh))
	api.put(t, readyOn(newSandbox("forbidden", "alice"), bare))
	s := newStack(t, api, nil)
	if resp, body := s.do(http.MethodGet, "/artifacts/sandboxes.s."+artifactID, "alice", nil, nil); resp.StatusCode != 200 || body != "x" {
		t.Fatalf("%d %s, want the artifact", resp.StatusCode, body)
	}
	asked := func() [5]int64 {
		_, reads, _, reviews := api.counts()
		return [5]int64{int64(reads), int64(reviews), mine.requests.Load(), bobs.requests.Load(), bare.requests.Load()}
	}
	var first []byte
	for name, tc := range map[string]struct {
		token, header string
		asks          [5]int64
	}{
		"unknown id":           {"sandboxes.s." + strings.Repeat("1", 32), "", [5]int64{0, 0, 1}},
		"of the header's":      {"sandboxes.s." + strings.Repeat("2", 32), "s", [5]int64{0, 0, 1}},
		"another's session":    {"sandboxes.bobs." + artifactID, "", [5]int64{0, 1}},
		"no such session":      {"sandboxes.absent." + artifactID, "", [5]int64{0, 1}},
		"another namespace":    {"kube-system.s." + artifactID, "", [5]int64{0, 1}},
		"without the right":    {"sandboxes.forbidden." + artifactID, "", [5]int64{0, 1}},
		"fresh agent":          {"sandboxes.fresh." + artifactID, "", [5]int64{0, 1}},
		"foreign X-Session-ID": {"sandboxes.s." + artifactID, "other", [5]int64{}},
		"malformed":            {"x", "", [5]int64{}},
		"nothing":              {"", "", [5]int64{}},
		"short id":             {"sandboxes.s.0f", "", [5]int64{}},
		"upper-case id":        {"sandboxes.s." + strings.ToUpper(artifactID), "", [5]int64{}},
		"a path below":         {"sandboxes.s." + artifactID + "/x", "", [5]int64{}},
		"a path up":            {"../artifacts/sandboxes.s." + artifactID, "", [5]int64{}},
		"two slashes":          {"/sandboxes.s." + artifactID, "", [5]int64{}},
		"a newline":            {"sandboxes.s." + artifactID + "%0a", "", [5]int64{}},
		"not UTF-8":            {"%ff", "", [5]int64{}},
	} {
		before := asked()
		resp, body := s.do(http.MethodGet, "/artifacts/"+tc.token, "alice", nil, withHeader("X-Session-ID", tc.header))
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d", name, resp.StatusCode)
		}
		resp.Header.Del("Date")
		resp.Header.Del("X-Request-ID")
		resp.Body = io.NopCloser(strings.NewReader(body))
		dump, err := httputil.DumpResponse(resp, true)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = dump
		}
		if diff := cmp.Diff(string(first), string(dump)); diff != "" {
			t.Errorf("%s answers differently:\n%s", name, diff)
		}
		after := asked()
		for i := range after {
			after[i] -= before[i]
		}
		if after != tc.asks {
			t.Errorf("%s: API server read, reviewed and agents asked %v times, want %v", name, after, tc.asks)
		}
		// HEAD says the same, but for the body.
		if head, _ := s.do(http.MethodHead, "/artifacts/"+tc.token, "alice", nil, withHeader("X-Session-ID", tc.header)); head.StatusCode != 404 || head.ContentLength != int64(len(body)) {
			t.Errorf("%s: HEAD %d of %d bytes", name, head.StatusCode, head.ContentLength)
		}
	}
	if resp, body := s.do(http.MethodGet, "/artifacts/sandboxes.s."+artifactID, "", nil, nil); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", resp.StatusCode, body)
	}
	if fresh.session != nil {
		t.Error("a fresh agent was bound by a reader: the next call would not learn what was lost")
	}
}

// What can't be read now is told apart, with its reason, for its owner.
func TestHTTPArtifactThatCannotBeReadNow(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.agent.session = &client.Session{}
	path := "/artifacts/sandboxes.s." + artifactID
	l.api.failReviews.Store(true)
	if resp, body := l.do(http.MethodGet, path, "alice", nil, nil); resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("callers can't be asked about: %d %s", resp.StatusCode, body)
	}
	l.api.failReviews.Store(false)
	l.agent.before = func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Length", "nonsense")
		agentError(w, http.StatusInternalServerError, "internal", "disk failed")
		return true
	}
	if resp, body := l.do(http.MethodGet, path, "alice", nil, nil); resp.StatusCode != 502 && resp.StatusCode != 500 || !strings.Contains(body, "disk failed") {
		t.Errorf("the agent fails: %d %s", resp.StatusCode, body)
	}
}

// R35: the audit line says tool, session, size, duration and code, and neither log
// nor metrics hold a name, a token or a byte.
func TestHTTPArtifactIsCountedAndAudited(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.agent.session = &client.Session{}
	l.agent.artifacts[artifactID] = fakeArtifact{"secret-name", "text/plain", []byte("secret-data")}
	for _, id := range []string{artifactID, strings.Repeat("1", 32)} {
		l.do(http.MethodGet, "/artifacts/sandboxes.s."+id, "alice", nil, nil)
	}
	l.log.await(`"operation":"get_artifact","tool":"","namespace":"sandboxes","session":"s","inBytes":0,"outBytes":11`)
	l.log.await(`"route":"/artifacts/{token}"`)
	log, metrics := l.log.String(), get(t, l.health+"/metrics")
	for _, want := range []string{`"code":"ok"`, `"code":"not_found"`} {
		if !strings.Contains(log, want) {
			t.Errorf("log lacks %s: %s", want, log)
		}
	}
	for _, secret := range []string{"secret", artifactID} {
		if strings.Contains(log, secret) || strings.Contains(metrics, secret) {
			t.Errorf("log or metrics hold %s", secret)
		}
	}
	for _, want := range []string{`berth_gateway_calls_total{code="ok",operation="get_artifact"} 1`, `berth_gateway_calls_total{code="not_found",operation="get_artifact"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

// R34: a shutdown waits for an artifact under way, which arrives whole.
func TestShutdownWaitsForAnArtifact(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.agent.session = &client.Session{}
	begun, finish := make(chan struct{}), make(chan struct{})
	l.agent.before = func(w http.ResponseWriter, _ *http.Request) bool {
		h := w.Header()
		h.Set("Content-Type", "text/plain")
		h.Set("ETag", `"e"`)
		h.Set("Content-Disposition", "attachment; filename=f")
		h.Set("Content-Length", "2")
		fmt.Fprint(w, "a")
		_ = http.NewResponseController(w).Flush() // a test's connection
		close(begun)
		<-finish
		fmt.Fprint(w, "b")
		return true
	}
	got := make(chan string)
	go func() {
		resp, body := l.do(http.MethodGet, "/artifacts/sandboxes.s."+artifactID, "alice", nil, nil)
		got <- fmt.Sprint(resp.StatusCode, body)
	}()
	<-begun
	l.stop()
	<-l.closed
	select {
	case err := <-l.done:
		t.Fatalf("the gateway ended under the reading: %v", err)
	default:
	}
	close(finish)
	if g := <-got; g != "200ab" {
		t.Errorf("got %s, want 200 and ab", g)
	}
	if err := <-l.done; err != nil {
		t.Error(err)
	}
}

// R36: from the agent as it is shipped, an artifact larger than any read comes
// whole, by ranges, resumed, and not again if it is there.
func TestRealLargeArtifactOverHTTP(t *testing.T) {
	t.Parallel()
	data := make([]byte, 20<<20+7)
	rand.Read(data)
	l, workspace := newRealWithin(t, client.Limits{ArtifactBytes: 32 << 20})
	if err := os.WriteFile(filepath.Join(workspace, "big.bin"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	out := structured(t, call(t, l.client(eras[1]), "export_artifact", object{"path": "big.bin"}))
	path := "/artifacts/" + strings.TrimPrefix(out["uri"].(string), "artifact://berth/")

	resp, body := l.do(http.MethodGet, path, "alice", nil, nil)
	if resp.StatusCode != 200 || sha256.Sum256([]byte(body)) != sha256.Sum256(data) {
		t.Fatalf("whole: %d, %d bytes", resp.StatusCode, len(body))
	}
	etag := resp.Header.Get("ETag")
	if !strings.HasPrefix(etag, `"`) || resp.Header.Get("Content-Disposition") != `attachment; filename="big.bin"` {
		t.Errorf("headers %v", resp.Header)
	}
	inParts(t, l, path, data, etag)
	// One that goes midway leaves nothing behind that keeps the next from reading.
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer alice")
	gone, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	gone.Body.Close()
	if resp, body := l.do(http.MethodGet, path, "alice", nil, withHeader("Range", "bytes=0-0")); resp.StatusCode != 206 || body != string(data[:1]) {
		t.Errorf("after one that went: %d, %d bytes", resp.StatusCode, len(body))
	}
}

// inParts reads what is large resumed, its end, and what of it is new.
func inParts(t *testing.T, l *live, path string, data []byte, etag string) {
	t.Helper()
	resume := func(r *http.Request) {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", 9<<20))
		r.Header.Set("If-Range", etag)
	}
	if resp, body := l.do(http.MethodGet, path, "alice", nil, resume); resp.StatusCode != 206 || !bytes.Equal([]byte(body), data[9<<20:]) {
		t.Errorf("resumed: %d, %d bytes", resp.StatusCode, len(body))
	}
	if resp, body := l.do(http.MethodGet, path, "alice", nil, withHeader("Range", "bytes=-7")); resp.StatusCode != 206 || body != string(data[20<<20:]) {
		t.Errorf("the last 7: %d, %d bytes", resp.StatusCode, len(body))
	}
	if resp, body := l.do(http.MethodGet, path, "alice", nil, withHeader("If-None-Match", etag)); resp.StatusCode != 304 || body != "" {
		t.Errorf("again: %d, %d bytes", resp.StatusCode, len(body))
	}
	if resp, body := l.do(http.MethodHead, path, "alice", nil, nil); resp.StatusCode != 200 || body != "" || resp.ContentLength != int64(len(data)) {
		t.Errorf("HEAD: %d of %d bytes", resp.StatusCode, resp.ContentLength)
	}
}
