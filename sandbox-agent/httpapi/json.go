package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

const contentJSON = "application/json"

// bodyTime is how long a request's body may take.
const bodyTime = 30 * time.Second

// writeJSON answers with v. An answer that can't be delivered has nobody left
// to be told.
func writeJSON(w http.ResponseWriter, status int, v any) {
	b := append(wire.Encode(v), '\n') // for those who look by hand
	headJSON(w, status, int64(len(b)))
	_, _ = w.Write(b)
}

// headJSON begins an answer of JSON of so many bytes.
func headJSON(w http.ResponseWriter, status int, length int64) {
	h := w.Header()
	h.Set("Content-Type", contentJSON)
	h.Set("Content-Length", strconv.FormatInt(length, 10))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
}

// readJSON reads one JSON object of at most limit bytes into v: no unknown
// field, nothing after it.
func readJSON(w http.ResponseWriter, r *http.Request, limit int64, v any) *Refusal {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != contentJSON {
		return refuse(http.StatusUnsupportedMediaType, wire.CodeUnsupportedMedia, "Content-Type must be "+contentJSON)
	}
	if r.ContentLength > limit {
		return tooLarge(limit)
	}
	// A body may not dribble in; a command may take its time afterwards.
	deadline := http.NewResponseController(w)
	if err := deadline.SetReadDeadline(time.Now().Add(bodyTime)); err == nil {
		defer func() { _ = deadline.SetReadDeadline(time.Time{}) }() // fails only when the connection is gone
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var exceeded *http.MaxBytesError
	if errors.As(err, &exceeded) {
		return tooLarge(limit)
	}
	if err != nil {
		return badRequest("the body ended early")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return badRequest("the body is not the JSON object that this route takes: " + err.Error())
	}
	if _, err := d.Token(); err != io.EOF {
		return badRequest("the body holds more than one JSON value")
	}
	return nil
}

func tooLarge(limit int64) *Refusal {
	return refuse(http.StatusRequestEntityTooLarge, wire.CodeTooLarge, "the body is larger than "+strconv.FormatInt(limit, 10)+" bytes")
}

// noBody refuses a body where none is due.
func noBody(r *http.Request) *Refusal {
	if r.ContentLength != 0 {
		return badRequest("this request takes no body")
	}
	return nil
}
