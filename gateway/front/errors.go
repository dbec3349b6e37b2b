package front

import (
	"encoding/json"
	"net/http"
)

// errorBody is what every refusal outside of MCP looks like.
type errorBody struct {
	Error errorDetail `json:"error"`
}

// errorDetail has a code for programs and a message for people.
type errorDetail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, status int, code, message string) {
	body, _ := json.Marshal(errorBody{errorDetail{code, message}}) // two strings: can't fail
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(append(body, '\n')) // a client that has gone needs no answer
}
