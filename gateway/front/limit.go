package front

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// limit bounds what a request may send: at once when its length is announced,
// else at the byte that exceeds it, and in time, so that a body that drips
// doesn't hold a connection.
func (f *Front) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > f.Options.MaxBody {
			f.Metrics.Refusal("body_too_large")
			w.Header().Set("Connection", "close")
			refuse(w, http.StatusRequestEntityTooLarge, "too_large", tooLarge(f.Options.MaxBody))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, f.Options.MaxBody)
		// A connection that can't have deadlines is a test's.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(f.Options.BodyTimeout))
		next.ServeHTTP(w, r)
	})
}

// bodyRead lifts the deadline once a body has been read. While it holds, the
// server would take it for a disconnect when it passes.
func bodyRead(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
}

// refuseBody answers a body that could not be read.
func (f *Front) refuseBody(w http.ResponseWriter, err error) {
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		f.Metrics.Refusal("body_too_large")
		refuse(w, http.StatusRequestEntityTooLarge, "too_large", tooLarge(tooLong.Limit))
		return
	}
	f.Metrics.Refusal("body_unreadable")
	w.Header().Set("Connection", "close")
	refuse(w, http.StatusBadRequest, "bad_body", "the request's body could not be read")
}

func tooLarge(limit int64) string {
	return fmt.Sprintf("the request's body is larger than %d bytes", limit)
}
