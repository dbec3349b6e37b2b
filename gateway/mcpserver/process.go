package mcpserver

import (
	"context"
	"errors"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/session"
)

// Tools for processes that bash has started in the background.
const (
	processOutputName = "process_output"
	processInputName  = "process_input"
	processSignalName = "process_signal"
	processListName   = "process_list"
)

// noProcesses is a session without a sandbox. Asking about what runs in it doesn't
// make one.
type noProcesses struct{}

func (noProcesses) Error() string { return "the session has no sandbox, so nothing runs in it" }

func (noProcesses) Unwrap() error { return session.ErrNotFound }

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

// onProcess runs a call about the session's processes. What ask returns is the
// structured result.
func (s *Server) onProcess(ctx context.Context, req *mcp.CallToolRequest, failed string, ask func(context.Context, session.Request) (any, error)) (*mcp.CallToolResult, error) {
	return s.inSession(ctx, req, failed, func(ctx context.Context, target session.Request) (*mcp.CallToolResult, error) {
		target.Mode = session.Find
		out, err := ask(ctx, target)
		if errors.Is(err, session.ErrNotFound) {
			return nil, noProcesses{}
		}
		if err != nil {
			return nil, err
		}
		return answer(out)
	})
}
