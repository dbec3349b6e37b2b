package mcpserver

import (
	"context"
	"errors"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/authz"
	"github.com/berth-dev/berth/gateway/session"
)

// Tools for processes that bash has started in the background.
const (
	processOutputName = "process_output"
	processInputName  = "process_input"
	processSignalName = "process_signal"
	processListName   = "process_list"
)

// errNoProcesses is a session without a sandbox. Asking about what runs in it
// doesn't make one.
var errNoProcesses = errors.New("the session has no sandbox, so nothing runs in it")

func processIDSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type:        "string",
		Pattern:     `^[A-Za-z0-9._-]{1,128}$`,
		Description: "The process_id that bash or process_list gave.",
	}
}

func noticeSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Description: "What the session lost before this call, and why."}
}

// onProcess runs a call about the session's processes, and makes its result of
// what ask returns: an error with text only, which begins with failed, or a
// structured result and the same as JSON text.
func (s *Server) onProcess(ctx context.Context, req *mcp.CallToolRequest, failed string, ask func(context.Context, session.Request) (any, error)) (*mcp.CallToolResult, error) {
	call := audit.FromContext(ctx)
	target, err := s.request(ctx, req.Extra.Header)
	if err != nil {
		return nil, err
	}
	if err := s.authorize(ctx, target, authz.Create); err != nil {
		return failure(failed + err.Error()), nil
	}
	target.MayCreate = false
	answer, err := ask(ctx, target)
	if errors.Is(err, session.ErrNotFound) {
		call.Code = audit.CodeNotFound
		return failure(failed + errNoProcesses.Error()), nil
	}
	if err != nil {
		call.Code = codeOf(ctx, err)
		return failure(failed + err.Error()), nil
	}
	return s.answer(ctx, failed, answer)
}

// answer is a tool's result: structured, and the same as JSON text.
func (s *Server) answer(ctx context.Context, failed string, answer any) (*mcp.CallToolResult, error) {
	call := audit.FromContext(ctx)
	out, err := encodeBounded(answer)
	if err != nil {
		call.Code = audit.CodeFailed
		return failure(failed + err.Error()), nil
	}
	call.Code = audit.CodeOK
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(out)}}, StructuredContent: out}, nil
}
