package front

import (
	"encoding/json"
	"net/http"

	"github.com/berth-dev/berth/gateway/requestid"
)

// errorBody is what every refusal outside of MCP looks like.
type errorBody struct {
	Error errorDetail `json:"error"`
}

// errorDetail has a code for programs and a message for people. What is no fault of
// the caller's also has the request's id, to ask whoever has the logs.
type errorDetail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Request string `json:"request,omitempty"`
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, status int, code, message string) {
	h := w.Header()
	detail := errorDetail{Code: code, Message: message}
	if status >= http.StatusInternalServerError {
		detail.Request = h.Get(requestid.Header)
	}
	body, _ := json.Marshal(errorBody{detail}) // strings: can't fail
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(append(body, '\n')) // a client that has gone needs no answer
}
