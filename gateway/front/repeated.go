package front

import (
	"net/http"

	"github.com/berth-dev/berth/gateway/session"
)

// single are headers that say who calls, for which session and what. A proxy may
// have read the first of two and the gateway the last, so there is to be one.
var single = []string{
	"Authorization", "Content-Type", session.Header, "X-Sandbox-Namespace", "X-Sandbox-Template",
	"Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name",
}

// once refuses requests that repeat such a header.
func (f *Front) once(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range single {
			if len(r.Header.Values(name)) > 1 {
				f.Metrics.Refusal("header")
				refuse(w, http.StatusBadRequest, "invalid_header", "invalid "+name+" header: it must be sent once")
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
