package httpapi

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/berth-dev/berth/sandbox-agent/token"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Signed admits requests that carry a good token of their own.
type Signed struct{ Verifier *token.Verifier }

// Admit implements Gate. Why a token is refused stays here: a caller that has
// the right one needs no hint.
func (g Signed) Admit(r *http.Request) *Refusal {
	values := r.Header.Values("Authorization")
	if len(values) == 1 {
		if compact, ok := strings.CutPrefix(values[0], "Bearer "); ok && g.Verifier.Verify(compact, r.Method, r.URL.Path) == nil {
			return nil
		}
	}
	return refuse(http.StatusUnauthorized, wire.CodeUnauthorized, "a token for this pod, method and path is needed, one per request")
}

// Local admits requests without a token, for an agent that a developer runs by
// hand on loopback or a Unix socket. Web pages that reach for it from a
// browser, or through a name that resolves to loopback, are refused.
type Local struct {
	// Unix: the listener is a Unix socket, where Host has no meaning.
	Unix bool
}

// Admit implements Gate.
func (g Local) Admit(r *http.Request) *Refusal {
	forbidden := func(message string) *Refusal {
		return refuse(http.StatusForbidden, wire.CodeForbidden, message)
	}
	if !g.Unix && !loopbackHost(r.Host) {
		return forbidden("Host must be a loopback address or localhost")
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || !loopbackHost(u.Host) {
			return forbidden("Origin must be loopback, or absent")
		}
	}
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return forbidden("requests from other sites are refused")
	}
	// A page elsewhere may send neither type unless it is allowed to first.
	want := contentJSON
	if r.URL.Path == wire.FilesPath || r.URL.Path == wire.FilePath {
		want = wire.FileType
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); r.ContentLength != 0 && (err != nil || kind != want) {
		return refuse(http.StatusUnsupportedMediaType, wire.CodeUnsupportedMedia, "Content-Type must be "+want)
	}
	return nil
}

func loopbackHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
