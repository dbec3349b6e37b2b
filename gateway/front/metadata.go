package front

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/berth-dev/berth/gateway/authn"
)

// metadataPath is where RFC 9728 §3.1 puts a resource's metadata. The resource's
// own path follows.
const metadataPath = "/.well-known/oauth-protected-resource"

// Resource is what the gateway tells OAuth clients of itself (RFC 9728).
type Resource struct {
	// URL is the gateway's, scheme and host. If it is empty, it is made of Scheme
	// and the request's Host, where that is known to be one of the gateway's names.
	URL, Scheme string
	// Servers are the issuers whose tokens are taken. None is told where tokens
	// come from the cluster alone.
	Servers []string
	// Open: nobody needs a token, so there is nothing to tell.
	Open bool
}

// metadata answers for the documents of the gateway and of its /mcp. They need no
// token: they say where to get one.
func (f *Front) metadata(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var path string
		switch r.URL.Path {
		case metadataPath:
		case metadataPath + "/mcp":
			path = "/mcp"
		default:
			next.ServeHTTP(w, r)
			return
		}
		base, ok := f.base(r)
		switch {
		case !ok:
			refuse(w, http.StatusNotFound, "not_found", "no metadata: the gateway has no --public-url and no --allowed-hosts, or asks for no tokens")
			return
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "method_not_allowed", "want GET")
			return
		}
		document, _ := json.Marshal(struct { // texts: can't fail
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers,omitempty"`
			Methods  []string `json:"bearer_methods_supported"`
			Name     string   `json:"resource_name"`
		}{base + path, f.Options.Resource.Servers, []string{"header"}, "Berth"})
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-cache")
		w.Write(append(document, '\n')) // a client that has gone needs no answer
	})
}

// base is the gateway's URL. A Host that nobody vouched for says nothing.
func (f *Front) base(r *http.Request) (string, bool) {
	o := f.Options.Resource
	switch {
	case o.Open:
		return "", false
	case o.URL != "":
		return o.URL, true
	case !f.Options.Origins.named():
		return "", false
	}
	base := o.Scheme + "://" + r.Host
	u, err := url.Parse(base)
	return base, err == nil && u.Host == r.Host && r.Host != ""
}

// wrongToken tells no more than that: not why, nor whose it would be.
const wrongToken = "the token is not one for this gateway, or has ended"

// challenge is what a request without a token, or with a wrong one, is told
// (RFC 6750 §3, RFC 9728 §5.1).
func (f *Front) challenge(r *http.Request, err error) string {
	challenge := `Bearer realm="berth"`
	if errors.Is(err, authn.ErrInvalidToken) {
		challenge += `, error="invalid_token", error_description="` + wrongToken + `"`
	}
	if base, ok := f.base(r); ok {
		challenge += `, resource_metadata="` + base + metadataPath + `/mcp"`
	}
	return challenge
}
