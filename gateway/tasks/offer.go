package tasks

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// version is the protocol's first that has results of several types.
const version = "2026-07-28"

// Declared tells whether a request's _meta declares the extension. What a client
// said before doesn't count.
func Declared(meta map[string]any) bool {
	if v, _ := meta[mcp.MetaKeyProtocolVersion].(string); v < version {
		return false
	}
	capabilities, _ := meta[mcp.MetaKeyClientCapabilities].(map[string]any)
	extensions, _ := capabilities["extensions"].(map[string]any)
	_, ok := extensions[Extension]
	return ok
}

// Undeclared is the error for a client that asks for what is a task's alone without
// having declared the extension.
func Undeclared() *jsonrpc.Error {
	data, err := json.Marshal(map[string]any{
		"requiredCapabilities": map[string]any{"extensions": map[string]any{Extension: struct{}{}}},
	})
	if err != nil {
		panic("tasks: a constant does not encode: " + err.Error())
	}
	return &jsonrpc.Error{
		Code:    mcp.CodeMissingRequiredClientCapabilities,
		Message: "missing required client capability: the extension " + Extension,
		Data:    data,
	}
}

// Offer is the chance of a tool's call to be answered with a task.
type Offer struct{ taken *Task }

// Take answers the call with a task: its handler's own result is dropped. The task
// must be known to its Source by now.
func (o *Offer) Take(t Task) *mcp.CallToolResult {
	t.Result, t.Error, t.InputRequests = nil, nil, nil // tasks/get has them
	o.taken = &t
	return &mcp.CallToolResult{}
}

type offerKey struct{}

// OfferOf returns the offer of a call, nil when its client must get its result.
func OfferOf(ctx context.Context) *Offer {
	offer, _ := ctx.Value(offerKey{}).(*Offer)
	return offer
}
