package front

import (
	"net/http"

	"github.com/berth-dev/berth/gateway/session"
)

// choose refuses requests whose headers choose a namespace or a template that can't
// be one, or two: nobody is asked about those.
func (f *Front) choose(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := session.ChoiceFrom(r.Header); err != nil {
			f.Metrics.Refusal("header")
			w.Header().Set("Connection", "close") // a body may follow
			refuse(w, http.StatusBadRequest, "invalid_header", err.Error())
			return
		}
		next.ServeHTTP(w, r)
	})
}
