package front

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Origins are the names that requests may use for this gateway and the web pages
// that may send them: what keeps a page that rebound its own name to the
// gateway's address from speaking to it.
type Origins struct {
	// Hosts are names, without port, that the Host header may hold. None means
	// any, or the loopback names if Loopback is set.
	Hosts []string
	// Origins are values that the Origin header may have. A request without the
	// header isn't a page's.
	Origins []string
	// Loopback: the gateway listens on loopback only. Its own names and pages are
	// allowed too, and no other by default.
	Loopback bool
}

func (f *Front) origin(next http.Handler) http.Handler {
	o := f.Options.Origins
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !o.hostAllowed(r.Host) {
			f.Metrics.Refusal("host")
			refuse(w, http.StatusForbidden, "host_not_allowed", "this Host is not one of the gateway's names; --allowed-hosts adds one")
			return
		}
		for _, origin := range r.Header.Values("Origin") {
			if !o.originAllowed(origin) {
				f.Metrics.Refusal("origin")
				refuse(w, http.StatusForbidden, "origin_not_allowed", "pages of this Origin may not call the gateway; --allowed-origins adds one")
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// named tells whether the Host of a request that was let through is known to be one
// of the gateway's names.
func (o Origins) named() bool { return len(o.Hosts) > 0 || o.Loopback }

func (o Origins) hostAllowed(hostport string) bool {
	if !o.named() {
		return true
	}
	host := hostName(hostport)
	return o.Loopback && isLoopback(host) || slices.ContainsFunc(o.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

func (o Origins) originAllowed(origin string) bool {
	if slices.ContainsFunc(o.Origins, func(a string) bool { return strings.EqualFold(a, origin) }) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && o.Loopback && (u.Scheme == "http" || u.Scheme == "https") && isLoopback(hostName(u.Host))
}

// hostName strips the port and the brackets of an IPv6 address.
func hostName(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
