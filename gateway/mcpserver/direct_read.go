package mcpserver

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
)

// read reads a call that may have a form, and leaves the request as it was.
func (d *direct) read(r *http.Request) (c toolCall, ok bool) {
	c.contentType, c.accept, c.name = only(r.Header, "Content-Type"), only(r.Header, "Accept"), only(r.Header, "Mcp-Name")
	if r.Method != http.MethodPost || c.contentType == "" || c.accept == "" || d.tools[c.name] == nil || r.Header["Last-Event-Id"] != nil ||
		only(r.Header, "Mcp-Protocol-Version") != directVersion || only(r.Header, "Mcp-Method") != methodCallTool {
		return c, false
	}
	body, err := io.ReadAll(r.Body)
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
	if err != nil {
		return c, false
	}
	m := object(body, "jsonrpc", "id", "method", "params")
	params := object(m["params"], "name", "arguments", "_meta")
	if params == nil || string(m["jsonrpc"]) != `"2.0"` || string(m["method"]) != `"`+methodCallTool+`"` ||
		!plainID.Match(m["id"]) || string(params["name"]) != `"`+c.name+`"` || !flat(params["arguments"]) ||
		len(params["_meta"])+len(c.contentType)+len(c.accept) > maxForm {
		return c, false
	}
	c.id, c.arguments, c.meta = m["id"], params["arguments"], string(params["_meta"])
	return c, true
}

// plainID is an id that goes back as it came.
var plainID = regexp.MustCompile(`^(0|[1-9][0-9]{0,14}|"[A-Za-z0-9_-]{1,128}")$`)

// only returns the value of a header that is there once; else nothing.
func only(h http.Header, name string) string {
	if values := h[name]; len(values) == 1 {
		return values[0]
	}
	return ""
}

// object returns the members of a JSON object that has exactly those, each once
// and with no white space beside them, or nil. Of a member that is there twice
// the SDK takes both: it adds up what _meta holds.
func object(data []byte, members ...string) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(data, &m) != nil || len(m) != len(members) {
		return nil
	}
	size := len("{}") + len(members) - 1 // the commas
	for _, name := range members {
		if m[name] == nil {
			return nil
		}
		size += len(name) + len(`"":`) + len(m[name])
	}
	if size != len(data) {
		return nil
	}
	return m
}

// flat tells whether arguments are a JSON object of texts, small whole numbers,
// true, false and null, which is all that tools take. The SDK refuses what is
// nested too deep, and numbers that no float64 holds.
func flat(arguments json.RawMessage) bool {
	const most = 64 // of digits, in all numbers together
	digits := 0
	for i := 0; i < len(arguments); i++ {
		switch c := arguments[i]; c {
		case '"':
			for i++; arguments[i] != '"'; i++ {
				if arguments[i] == '\\' {
					i++
				}
			}
		case '{':
			if i > 0 {
				return false
			}
		case '[', '.', 'E', '+':
			return false
		case 'e':
			if p := arguments[i-1]; p >= '0' && p <= '9' {
				return false
			}
		default:
			if c >= '0' && c <= '9' {
				digits++
			}
		}
	}
	return arguments[0] == '{' && digits <= most
}
