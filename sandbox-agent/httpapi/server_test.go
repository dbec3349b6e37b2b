package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/artifact"
	"github.com/berth-dev/berth/sandbox-agent/shell"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// fakeShell runs nothing.
type fakeShell struct{ ran []shell.Command }

func (s *fakeShell) Kind() string                           { return wire.ShellBash }
func (s *fakeShell) Setenv(context.Context, []string) error { return nil }
func (s *fakeShell) Run(_ context.Context, c shell.Command) (shell.Result, error) {
	s.ran = append(s.ran, c)
	return shell.Result{}, nil
}

// anyone admits every request.
type anyone struct{}

func (anyone) Admit(*http.Request) *Refusal { return nil }

func fixture(t testing.TB, gate Gate) (*Server, *fakeShell) {
	t.Helper()
	dir := t.TempDir()
	store, err := artifact.NewStore(dir, []string{dir}, artifact.SystemClock{})
	if err != nil {
		t.Fatal(err)
	}
	sh := &fakeShell{}
	s := New(sh, store, gate, slog.New(slog.DiscardHandler))
	s.BindLocally()
	return s, sh
}

// TestLocalGate: a developer's agent isn't for web pages, nor for names that
// someone else made resolve to loopback.
func TestLocalGate(t *testing.T) {
	for name, c := range map[string]struct {
		host, origin, site, kind string
		want                     int
	}{
		"loopback":          {host: "127.0.0.1:8090", kind: "application/json", want: 200},
		"localhost":         {host: "localhost:8090", kind: "application/json", want: 200},
		"IPv6":              {host: "[::1]:8090", kind: "application/json", want: 200},
		"own page":          {host: "localhost:8090", origin: "http://localhost:3000", kind: "application/json", want: 200},
		"rebound name":      {host: "evil.example:8090", kind: "application/json", want: 403},
		"another address":   {host: "10.0.0.1", kind: "application/json", want: 403},
		"no host":           {host: "", kind: "application/json", want: 403},
		"page elsewhere":    {host: "localhost", origin: "https://evil.example", kind: "application/json", want: 403},
		"opaque origin":     {host: "localhost", origin: "null", kind: "application/json", want: 403},
		"cross-site":        {host: "localhost", site: "cross-site", kind: "application/json", want: 403},
		"form":              {host: "localhost", kind: "text/plain", want: 415},
		"form without type": {host: "localhost", want: 415},
	} {
		t.Run(name, func(t *testing.T) {
			s, sh := fixture(t, Local{})
			r := httptest.NewRequest(http.MethodPost, wire.ExecPath, strings.NewReader(`{"command":"true"}`))
			r.Host = c.host
			for k, v := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site, "Content-Type": c.kind} {
				if v != "" {
					r.Header.Set(k, v)
				}
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if body, _ := io.ReadAll(w.Body); w.Code != c.want || (len(sh.ran) == 1) != (c.want == 200) {
				t.Errorf("want %d, got %d %s, ran %v", c.want, w.Code, body, sh.ran)
			}
		})
	}
}

func TestTimeoutsAndOutputAreClamped(t *testing.T) {
	limits := wire.Limits{CommandTimeoutDefault: 7, CommandTimeoutMax: 50, OutputBytes: 1000}
	for _, c := range []struct {
		timeout float64
		inline  int
		seconds float64
		bytes   int
	}{
		{0, 0, 7, 1000}, {-1, -1, 7, 1000}, {1.5, 10, 1.5, 10}, {50, 1000, 50, 1000}, {51, 1001, 50, 1000}, {1e300, 1 << 40, 50, 1000},
	} {
		got := command(wire.ExecRequest{Timeout: c.timeout, MaxOutputBytes: c.inline}, limits)
		if got.Timeout.Seconds() != c.seconds || got.OutputBytes != c.bytes {
			t.Errorf("%v, %d: got %v, %d", c.timeout, c.inline, got.Timeout, got.OutputBytes)
		}
	}
	if got := command(wire.ExecRequest{}, wire.Limits{}.WithDefaults()); got.Timeout.Seconds() != 60 || got.OutputBytes != 256<<10 {
		t.Errorf("defaults: got %v, %d", got.Timeout, got.OutputBytes)
	}
}
