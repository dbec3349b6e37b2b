package front

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/metrics"
)

const token = "n.s.0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f"

// file is an artifact, and what was opened of it.
type file struct {
	data []byte
	etag string
	// body, if set, is what is read instead of data.
	body func(ctx context.Context, part []byte) io.ReadCloser

	mu     sync.Mutex
	opened []artifact.Part
}

func (f *file) Open(ctx context.Context, _ http.Header, _ artifact.Handle, part artifact.Part) (*artifact.Reading, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened = append(f.opened, part)
	size := int64(len(f.data))
	if part.Offset > 0 && part.Offset >= size {
		return nil, artifact.ErrRange
	}
	end := size
	if part.Length > 0 {
		end = min(size, part.Offset+part.Length)
	}
	bytesOf := f.data[part.Offset:end]
	r := &artifact.Reading{
		Name: "f.txt", MIMEType: "text/plain", Size: size, ETag: f.etag, SHA256: strings.Repeat("00", 32),
		Offset: part.Offset, Length: end - part.Offset, Body: io.NopCloser(bytes.NewReader(bytesOf)),
	}
	if f.body != nil {
		r.Body = f.body(ctx, bytesOf)
	}
	return r, nil
}

// serve serves artifacts, and tells the audit log.
func serve(t *testing.T, artifacts Artifacts, change func(*Options)) (url string, log *audited) {
	t.Helper()
	handler, log := newFront(t, artifacts, change)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL, log
}

func newFront(t *testing.T, artifacts Artifacts, change func(*Options)) (handler http.Handler, log *audited) {
	t.Helper()
	log = &audited{lines: make(chan string, 64)}
	o := Options{
		MaxBody: 1 << 10, BodyTimeout: time.Minute, Draining: t.Context(), Ending: context.WithoutCancel(t.Context()),
		Streams: Streams{Max: 2, Each: 2, Stall: time.Minute, Longest: time.Minute},
	}
	if change != nil {
		change(&o)
	}
	f := Front{
		Authenticator: authn.NewNone(), Artifacts: artifacts, Metrics: metrics.New(func() int { return 0 }),
		Log: slog.New(slog.NewJSONHandler(log, nil)), Options: o,
	}
	return f.Handler(http.NotFoundHandler()), log
}

// audited is the lines of calls.
type audited struct{ lines chan string }

func (a *audited) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("Call finished")) {
		a.lines <- string(p)
	}
	return len(p), nil
}

// next waits for a line, which must hold all of want.
func (a *audited) next(t *testing.T, want ...string) {
	t.Helper()
	line := <-a.lines
	for _, w := range want {
		if !strings.Contains(line, w) {
			t.Errorf("audit line %s, want %s in it", line, w)
		}
	}
	if strings.Contains(line, token) || strings.Contains(line, "f.txt") {
		t.Errorf("audit line %s names the artifact", line)
	}
}

func request(t *testing.T, method, url string, header map[string]string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url+"/artifacts/"+token, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		r.Header.Set(k, v)
	}
	return r
}

func do(t *testing.T, r *http.Request) (resp *http.Response, body string, err error) {
	t.Helper()
	resp, err = http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp, string(data), err
}

// R36: single ranges by a strong ETag; no byte is read that isn't sent, but for the
// one that comes with what a condition needs to know.
func TestArtifactRanges(t *testing.T) {
	t.Parallel()
	const data = "0123456789"
	type parts = []artifact.Part
	facts := artifact.Part{Length: 1}
	for name, tc := range map[string]struct {
		method string
		header map[string]string
		status int
		body   string
		span   string // Content-Range
		opened parts
	}{
		"whole":                    {"GET", nil, 200, data, "", parts{{}}},
		"HEAD":                     {"HEAD", nil, 200, "", "", parts{facts}},
		"HEAD with a range":        {"HEAD", map[string]string{"Range": "bytes=2-3"}, 200, "", "", parts{facts}},
		"first byte":               {"GET", map[string]string{"Range": "bytes=0-0"}, 206, "0", "bytes 0-0/10", parts{{Length: 1}}},
		"middle":                   {"GET", map[string]string{"Range": "bytes=2-4"}, 206, "234", "bytes 2-4/10", parts{{Offset: 2, Length: 3}}},
		"from 8":                   {"GET", map[string]string{"Range": "bytes=8-"}, 206, "89", "bytes 8-9/10", parts{{Offset: 8}}},
		"beyond the end in part":   {"GET", map[string]string{"Range": "bytes=8-99"}, 206, "89", "bytes 8-9/10", parts{{Offset: 8, Length: 92}}},
		"the last 3":               {"GET", map[string]string{"Range": "bytes=-3"}, 206, "789", "bytes 7-9/10", parts{facts, {Offset: 7}}},
		"more than the last":       {"GET", map[string]string{"Range": "bytes=-99"}, 206, data, "bytes 0-9/10", parts{facts, {Offset: 1}}},
		"last byte":                {"GET", map[string]string{"Range": "bytes=9-9"}, 206, "9", "bytes 9-9/10", parts{{Offset: 9, Length: 1}}},
		"at the end":               {"GET", map[string]string{"Range": "bytes=10-"}, 416, "", "bytes */10", parts{{Offset: 10}, facts}},
		"backwards":                {"GET", map[string]string{"Range": "bytes=4-2"}, 416, "", "", parts{facts}},
		"of 19 digits":             {"GET", map[string]string{"Range": "bytes=1000000000000000000-"}, 416, "", "bytes */10", parts{facts}},
		"the last 0":               {"GET", map[string]string{"Range": "bytes=-0"}, 416, "", "bytes */10", parts{facts}},
		"other unit is ignored":    {"GET", map[string]string{"Range": "lines=1-2"}, 200, data, "", parts{{}}},
		"unit in capitals":         {"GET", map[string]string{"Range": "BYTES=2-4"}, 206, "234", "bytes 2-4/10", parts{{Offset: 2, Length: 3}}},
		"no unit is ignored":       {"GET", map[string]string{"Range": "1-2"}, 200, data, "", parts{{}}},
		"several are not served":   {"GET", map[string]string{"Range": "bytes=0-1,4-5"}, 200, data, "", parts{{}}},
		"If-Range matches":         {"GET", map[string]string{"Range": "bytes=2-4", "If-Range": `"e"`}, 206, "234", "bytes 2-4/10", parts{facts, {Offset: 2}}},
		"If-Range of another":      {"GET", map[string]string{"Range": "bytes=2-4", "If-Range": `"x"`}, 200, data, "", parts{facts, {Offset: 1}}},
		"If-Range weak":            {"GET", map[string]string{"Range": "bytes=2-4", "If-Range": `W/"e"`}, 200, data, "", parts{facts, {Offset: 1}}},
		"If-None-Match matches":    {"GET", map[string]string{"If-None-Match": `"x", "e"`}, 304, "", "", parts{facts}},
		"If-None-Match of another": {"GET", map[string]string{"If-None-Match": `"x"`}, 200, data, "", parts{facts, {Offset: 1}}},
		"If-Match of another":      {"GET", map[string]string{"If-Match": `"x"`}, 412, "", "", parts{facts}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &file{data: []byte(data), etag: `"e"`}
			url, _ := serve(t, f, nil)
			resp, body, err := do(t, request(t, tc.method, url, tc.header))
			if err != nil {
				t.Fatal(err)
			}
			if tc.status == 416 {
				if !strings.Contains(body, `"code":"bad_range"`) || resp.Header.Get("Content-Disposition") != "" {
					t.Errorf("body %s, header %v", body, resp.Header)
				}
				body = ""
			}
			if resp.StatusCode != tc.status || body != tc.body || resp.Header.Get("Content-Range") != tc.span {
				t.Errorf("%d %q, range %q; want %d %q, %q", resp.StatusCode, body, resp.Header.Get("Content-Range"), tc.status, tc.body, tc.span)
			}
			if tc.method == "HEAD" && resp.ContentLength != int64(len(data)) {
				t.Errorf("Content-Length %d, want %d", resp.ContentLength, len(data))
			}
			if diff := cmp.Diff(tc.opened, f.opened); diff != "" {
				t.Errorf("opened (-want +got):\n%s", diff)
			}
		})
	}
}

func TestArtifactHeaders(t *testing.T) {
	t.Parallel()
	url, _ := serve(t, &file{data: []byte("hello"), etag: `"e"`}, nil)
	for _, method := range []string{"GET", "HEAD"} {
		resp, _, err := do(t, request(t, method, url, nil))
		if err != nil {
			t.Fatal(err)
		}
		resp.Header.Del("Date")
		resp.Header.Del("X-Request-ID")
		want := http.Header{
			"Accept-Ranges":           {"bytes"},
			"Cache-Control":           {"private, no-cache"},
			"Content-Disposition":     {`attachment; filename="f.txt"`},
			"Content-Length":          {"5"},
			"Content-Security-Policy": {"sandbox; default-src 'none'"},
			"Content-Type":            {"text/plain"},
			"Etag":                    {`"e"`},
			"Repr-Digest":             {"sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"},
			"X-Content-Type-Options":  {"nosniff"},
		}
		if diff := cmp.Diff(want, resp.Header); diff != "" {
			t.Errorf("%s (-want +got):\n%s", method, diff)
		}
	}
}

func TestEmptyArtifact(t *testing.T) {
	t.Parallel()
	url, log := serve(t, &file{etag: `"e"`}, nil)
	for _, header := range []map[string]string{nil, {"Range": "bytes=0-"}, {"Range": "bytes=-5"}, {"Range": "bytes=-0"}, {"If-None-Match": `"x"`}} {
		resp, body, err := do(t, request(t, "GET", url, header))
		if err != nil || resp.StatusCode != 200 || body != "" || resp.ContentLength != 0 {
			t.Errorf("%v: %d %q of %d, %v", header, resp.StatusCode, body, resp.ContentLength, err)
		}
		log.next(t, `"outBytes":0`, `"code":"ok"`)
	}
}

// What is no reading of an artifact asks nobody for one.
func TestBadArtifactRequests(t *testing.T) {
	t.Parallel()
	f := &file{data: []byte("x"), etag: `"e"`}
	url, _ := serve(t, f, nil)
	for _, tc := range []struct {
		method, query, body string
		status              int
	}{
		{"POST", "", "", 405}, {"PUT", "", "x", 405}, {"DELETE", "", "", 405}, {"OPTIONS", "", "", 405},
		{"GET", "?offset=1", "", 400}, {"GET", "", "x", 400}, {"HEAD", "?x", "", 400},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tc.method, url+"/artifacts/"+token+tc.query, strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, body, err := do(t, r)
		if err != nil || resp.StatusCode != tc.status {
			t.Errorf("%s %s: %d %s, want %d", tc.method, tc.query, resp.StatusCode, body, tc.status)
		}
		if tc.status == 405 && resp.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: Allow %q", tc.method, resp.Header.Get("Allow"))
		}
	}
	if len(f.opened) != 0 {
		t.Errorf("opened %v, want nothing", f.opened)
	}
}
