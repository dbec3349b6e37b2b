package front

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/berth-dev/berth/gateway/room"
)

// limit bounds what a request may send: at once when its length is announced,
// else at the byte that exceeds it, and in time, so that a body that drips
// doesn't hold a connection.
func (f *Front) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isUpload(r) {
			// It has a limit of its own, the session's, and a time for each piece once
			// it is read. Until then, no more is read of it than of any other.
			f.extendBody(w)
			next.ServeHTTP(w, r)
			return
		}
		if r.ContentLength > f.Options.MaxBody {
			f.Metrics.Refusal("body_too_large")
			w.Header().Set("Connection", "close")
			refuse(w, http.StatusRequestEntityTooLarge, "too_large", tooLarge(f.Options.MaxBody))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, f.Options.MaxBody)
		f.extendBody(w)
		next.ServeHTTP(w, r)
	})
}

// extendBody gives a body its time from now on. A connection that can't have
// deadlines is a test's.
func (f *Front) extendBody(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(f.Options.BodyTimeout))
}

// What a body costs: it is copied for each who reads it, the SDK and the agent's
// client among them. Bodies of less than smallBody are not counted.
const (
	bodyRoom   = 128 << 20
	costOfBody = 10
	smallBody  = 64 << 10
)

// newBodies returns the room of all bodies. What one caller may have of it leaves
// enough for another's largest, for it is held as long as a command runs.
func newBodies(maxBody int64) *room.Room {
	return room.New(bodyRoom, max(bodyRoom-costOf(maxBody), bodyRoom/2))
}

// costOf is what a body of so many bytes takes of the room.
func costOf(size int64) int64 {
	if size < smallBody {
		return 0
	}
	return size * costOfBody
}

// admitBody waits for the room that a body and what is made of it take. One that
// doesn't announce its length takes that of the largest, until it is known. It
// answers the request if there is no room.
func (f *Front) admitBody(w http.ResponseWriter, r *http.Request) (share *room.Share, ok bool) {
	size := r.ContentLength
	if size < 0 {
		size = f.Options.MaxBody
	}
	cost := costOf(size)
	if cost == 0 {
		return nil, true
	}
	share, err := f.bodies.Take(r.Context(), cost)
	if err != nil {
		f.Metrics.Refusal("busy")
		w.Header().Set("Connection", "close")
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "busy", "too many large requests at a time: try again")
		return nil, false
	}
	f.extendBody(w) // the time to send it begins now
	return share, true
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
	return fmt.Sprintf("the request's body is larger than %d bytes: a file that doesn't fit comes in by POST /sessions/{id}/files", limit)
}
