package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// direct takes tool calls past the MCP SDK, which decodes each more than ten
// times, into 32 KiB of memory every time, and makes a session for it: half of
// what a call costs in the gateway. The call gets the same middleware and tools,
// and its answer has the same bytes.
//
// It judges nothing itself: only a request in the form of one that the SDK has
// passed to the tools goes this way. All others are the SDK's: those of older
// protocols, batches, calls with a progress token, and whatever is unusual.
type direct struct {
	sdk    http.Handler
	handle mcp.MethodHandler
	tools  map[string]mcp.ToolHandler
	server *mcp.Implementation

	mu    sync.RWMutex
	known map[form]struct{}
}

// form is what the SDK judges a call by: all of it but id and arguments.
type form struct {
	contentType, accept string
	name                string // of the tool
	meta                string // _meta as it was sent
}

// toolCall is a request that has a form.
type toolCall struct {
	form
	id        json.RawMessage
	arguments json.RawMessage
}

const (
	directVersion = "2026-07-28"
	// maxForms and maxForm, in bytes, bound what is remembered: clients send the
	// same few.
	maxForms = 256
	maxForm  = 4 << 10
)

// newDirect puts direct in front of the SDK's handler. middleware comes in the
// order in which a call passes it.
func newDirect(sdk http.Handler, server *mcp.Implementation, tools map[string]mcp.ToolHandler, middleware ...mcp.Middleware) *direct {
	d := &direct{sdk: sdk, server: server, tools: tools, known: map[form]struct{}{}}
	d.handle = func(ctx context.Context, _ string, req mcp.Request) (mcp.Result, error) {
		call := req.(*mcp.CallToolRequest)
		return d.tools[call.Params.Name](ctx, call)
	}
	for i := len(middleware) - 1; i >= 0; i-- {
		d.handle = middleware[i](d.handle)
	}
	return d
}

// ServeHTTP implements http.Handler.
func (d *direct) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, ok := d.read(r)
	if !ok {
		d.sdk.ServeHTTP(w, r)
		return
	}
	d.mu.RLock()
	_, known := d.known[c.form]
	d.mu.RUnlock()
	if known {
		d.answer(w, r, c)
		return
	}
	var passed atomic.Bool
	d.sdk.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), passedKey{}, &passed)))
	if passed.Load() {
		d.learn(c.form)
	}
}

type passedKey struct{}

// notePassed notes that the SDK has passed a call on. It is the first middleware.
func notePassed(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if passed, ok := ctx.Value(passedKey{}).(*atomic.Bool); ok {
			passed.Store(true)
		}
		return next(ctx, method, req)
	}
}

func (d *direct) learn(f form) {
	var meta map[string]json.RawMessage
	if json.Unmarshal([]byte(f.meta), &meta) != nil || meta["progressToken"] != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= maxForms {
		clear(d.known)
	}
	d.known[f] = struct{}{}
}

// answer calls the tool and writes one event, as the SDK does.
func (d *direct) answer(w http.ResponseWriter, r *http.Request, c toolCall) {
	result, err := d.handle(r.Context(), methodCallTool, &mcp.CallToolRequest{
		Params: &mcp.CallToolParamsRaw{Name: c.name, Arguments: c.arguments},
		Extra:  &mcp.RequestExtra{Header: r.Header},
	})
	tool, ok := result.(*mcp.CallToolResult)
	if !ok { // a tool's own errors are results
		tool = failure(err.Error())
	}
	meta := map[string]any{mcp.MetaKeyServerInfo: d.server}
	maps.Copy(meta, tool.Meta)
	event := bytes.NewBufferString("event: message\ndata: ")
	err = json.NewEncoder(event).Encode(reply{Version: "2.0", ID: c.id, Result: replyResult{
		Meta: meta, Content: tool.Content, Structured: tool.StructuredContent, IsError: tool.IsError, Type: "complete",
	}})
	if err != nil {
		panic("mcpserver: a tool's result does not encode: " + err.Error())
	}
	h := w.Header()
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("Content-Type", "text/event-stream")
	h.Set("Connection", "keep-alive")
	event.WriteByte('\n') // after the encoder's own
	// Nobody is there to be told of an error.
	_, _ = w.Write(event.Bytes())
}

// reply is a tool's result as JSON-RPC carries it; the order is the SDK's.
type reply struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  replyResult     `json:"result"`
}

type replyResult struct {
	Meta       map[string]any `json:"_meta"`
	Content    []mcp.Content  `json:"content"`
	Structured any            `json:"structuredContent,omitempty"`
	IsError    bool           `json:"isError,omitempty"`
	Type       string         `json:"resultType"`
}
