package front

import (
	"errors"
	"net/http"

	"github.com/berth-dev/berth/gateway/authn"
)

// authenticate lets only requests through whose caller is known.
func (f *Front) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := f.Authenticator.Authenticate(r)
		switch {
		case errors.Is(err, authn.ErrUnauthenticated):
			f.Metrics.Refusal("unauthenticated")
			w.Header().Set("WWW-Authenticate", f.challenge(r, err))
			message := authn.ErrUnauthenticated.Error()
			if errors.Is(err, authn.ErrInvalidToken) {
				message = wrongToken
			}
			refuse(w, http.StatusUnauthorized, "unauthenticated", message)
			return
		case r.Context().Err() != nil:
			return // nobody is there to be told
		case err != nil:
			f.Metrics.Refusal("authentication_unavailable")
			f.Log.ErrorContext(r.Context(), "Caller could not be authenticated", "error", err)
			w.Header().Set("Retry-After", "1")
			refuse(w, http.StatusServiceUnavailable, "authentication_unavailable", "callers can't be authenticated at the moment")
			return
		}
		noteCaller(r.Context(), caller)
		next.ServeHTTP(w, r.WithContext(authn.WithCaller(r.Context(), caller)))
	})
}
