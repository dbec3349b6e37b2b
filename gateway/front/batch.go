package front

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
)

// maxBatch is how many messages one request may hold: as many as the line before
// a session's shell. Each is a call of its own at the same time, and a body has
// room for tens of thousands.
const maxBatch = 64

// batchLength counts the messages of a batch, and no further than one more than
// is allowed. It is 0 for what is no batch, and an error for one that is no JSON.
func batchLength(body []byte) (int, error) {
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '[' {
		return 0, nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if _, err := d.Token(); err != nil {
		return 0, err
	}
	n := 0
	for d.More() && n <= maxBatch {
		var m json.RawMessage
		if err := d.Decode(&m); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// refuseBatch answers a batch that holds too much, or no messages.
func (f *Front) refuseBatch(w http.ResponseWriter, n int, err error) {
	if err != nil {
		f.Metrics.Refusal("body_unreadable")
		refuse(w, http.StatusBadRequest, "bad_body", "the request's body is not JSON")
		return
	}
	f.Metrics.Refusal("batch_too_large")
	refuse(w, http.StatusRequestEntityTooLarge, "batch_too_large", fmt.Sprintf("a batch of more than %d messages", maxBatch))
}
