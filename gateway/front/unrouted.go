package front

import "net/http"

// unrouted makes the mux's own refusals look as all others do, and tells a client
// with only half of the URL where MCP is.
func unrouted(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" {
			w = &plainText{ResponseWriter: w}
		}
		mux.ServeHTTP(w, r)
	})
}

// plainText answers in place of the mux, which writes text: 404, or 405 with Allow.
type plainText struct {
	http.ResponseWriter
	refused bool
}

// WriteHeader implements http.ResponseWriter.
func (p *plainText) WriteHeader(status int) {
	switch status {
	case http.StatusNotFound:
		refuse(p.ResponseWriter, status, "not_found", "no such route: MCP is at /mcp")
	case http.StatusMethodNotAllowed:
		refuse(p.ResponseWriter, status, "method_not_allowed", "this route takes "+p.Header().Get("Allow"))
	default: // a redirect to the clean path
		p.ResponseWriter.WriteHeader(status)
		return
	}
	p.refused = true
}

// Write implements http.ResponseWriter.
func (p *plainText) Write(text []byte) (int, error) {
	if p.refused {
		return len(text), nil
	}
	return p.ResponseWriter.Write(text)
}
