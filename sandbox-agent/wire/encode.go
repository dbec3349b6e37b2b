package wire

import (
	"bytes"
	"encoding/json"
)

// Encode encodes a type of this package as JSON, in which <, > and & stand as they
// are: output is full of them.
func Encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("wire: a type of it does not encode: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
