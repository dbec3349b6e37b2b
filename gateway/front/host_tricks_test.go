package front

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/metrics"
)

// Nothing but one of the gateway's own names, and a port, gets from a request's Host
// into what OAuth clients are told: HTTP/2 takes more for an :authority than HTTP/1.1
// does for a Host.
func TestHostsThatPretendToBeTheGateway(t *testing.T) {
	t.Parallel()
	f := &Front{
		Authenticator: noToken{},
		Metrics:       metrics.New(func() int { return 0 }),
		Log:           slog.New(slog.DiscardHandler),
		Options:       Options{Origins: Origins{Hosts: []string{"gw.example"}}, Resource: Resource{Scheme: "https"}, MaxBody: 1 << 10},
	}
	handler := f.Handler(http.NotFoundHandler())
	for host, want := range map[string]string{
		"gw.example":                   "https://gw.example",
		"GW.example:8443":              "https://GW.example:8443",
		"evil.example":                 "",
		"gw.example.evil.example":      "",
		"gw.example@evil.example":      "",
		"evil.example@gw.example":      "",
		"gw.example:80@evil.example":   "",
		"gw.example:80/evil":           "",
		"gw.example:80?evil":           "",
		"gw.example:80#evil":           "",
		`gw.example:80", evil="x`:      "",
		"gw.example:80\r\nX-Evil: 1":   "",
		"gw.example:80, gw.example:80": "",
		"gw.example:evil":              "",
		"[gw.example]:80@evil.example": "",
		"":                             "",
	} {
		for _, path := range []string{metadataPath, "/mcp"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = host
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			body, err := io.ReadAll(w.Result().Body)
			if err != nil {
				t.Fatal(err)
			}
			told := string(body) + w.Header().Get("WWW-Authenticate")
			if want == "" && (strings.Contains(told, "://") || strings.Contains(told, "evil")) {
				t.Errorf("host %q, %s: %s", host, path, told)
			}
			if want != "" && !strings.Contains(told, `"`+want) {
				t.Errorf("host %q, %s: %s, want %s", host, path, told, want)
			}
		}
	}
}

// noToken finds no caller.
type noToken struct{}

func (noToken) Authenticate(*http.Request) (*authn.Caller, error) {
	return nil, authn.ErrUnauthenticated
}
