package front

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"unicode/utf8"
)

// maxBatch is how many messages one request may hold: as many as the line before
// a session's shell. Each is a call of its own at the same time, and a body has
// room for tens of thousands.
const maxBatch = 64

var (
	errNotUTF8    = errors.New("the request's body is not UTF-8")
	errNotJSON    = errors.New("the request's body is not one JSON value")
	errLargeBatch = fmt.Errorf("a batch holds at most %d messages", maxBatch)
)

// parse reads a body: one message, or a batch, whose messages are the SDK's to
// read. An empty body is neither. The SDK would take the first value of several,
// and another reader in between the last.
func parse(body []byte) (m message, batch bool, err error) {
	if !utf8.Valid(body) {
		return m, false, errNotUTF8
	}
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	switch {
	case len(trimmed) == 0:
		return m, false, nil
	case trimmed[0] == '[':
		return m, true, checkBatch(body)
	}
	var syntax *json.SyntaxError
	if err := json.Unmarshal(body, &m); errors.As(err, &syntax) {
		return message{}, false, errNotJSON
	}
	return m, false, nil // a field of another type is the SDK's to refuse
}

// checkBatch reads no further than one message more than is allowed.
func checkBatch(body []byte) error {
	d := json.NewDecoder(bytes.NewReader(body))
	if _, err := d.Token(); err != nil {
		return errNotJSON
	}
	var m json.RawMessage
	for n := 0; d.More(); n++ {
		if n == maxBatch {
			return errLargeBatch
		}
		if err := d.Decode(&m); err != nil {
			return errNotJSON
		}
	}
	if _, err := d.Token(); err != nil {
		return errNotJSON
	}
	if _, err := d.Token(); err != io.EOF {
		return errNotJSON
	}
	return nil
}

// refuseMessage answers a body that parse refused.
func (f *Front) refuseMessage(w http.ResponseWriter, err error) {
	if errors.Is(err, errLargeBatch) {
		f.Metrics.Refusal("batch_too_large")
		refuse(w, http.StatusRequestEntityTooLarge, "batch_too_large", err.Error())
		return
	}
	f.Metrics.Refusal("body_unreadable")
	refuse(w, http.StatusBadRequest, "bad_body", err.Error())
}
