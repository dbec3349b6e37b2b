package front

import (
	"net/http"

	"github.com/berth-dev/berth/gateway/requestid"
)

// identify gives a request its id, before anything can refuse it.
func identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := requestid.For(r)
		w.Header().Set(requestid.Header, id)
		next.ServeHTTP(w, r.WithContext(requestid.With(r.Context(), id)))
	})
}
