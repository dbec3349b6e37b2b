package mcpserver

import (
	"context"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/session"
)

type processSignalIn struct {
	ProcessID string `json:"process_id"`
	Signal    string `json:"signal"`
}

type processSignalOut struct {
	ProcessID string `json:"process_id"`
	Signal    string `json:"signal"`
	Notice    string `json:"notice,omitempty"`
}

func processSignalTool() *mcp.Tool {
	return &mcp.Tool{
		Name:        processSignalName,
		Title:       "Signal a background process",
		Description: "Send a signal to a background process and its group. TERM asks it to end; KILL ends everything that it started, also once it has ended itself.",
		Annotations: &mcp.ToolAnnotations{Title: "Signal a background process", DestructiveHint: ptr(true), OpenWorldHint: ptr(false)},
		InputSchema: &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"process_id": processIDSchema(),
				"signal":     {Type: "string", Pattern: `^[A-Za-z0-9+-]{1,16}$`, Description: "A name, such as TERM, INT, HUP or KILL, or a number."},
			},
			PropertyOrder:        []string{"process_id", "signal"},
			Required:             []string{"process_id", "signal"},
			AdditionalProperties: closed(),
		},
		OutputSchema: &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"process_id": {Type: "string"},
				"signal":     {Type: "string", Description: "What was sent."},
				"notice":     noticeSchema(),
			},
			PropertyOrder:        []string{"process_id", "signal", "notice"},
			Required:             []string{"process_id", "signal"},
			AdditionalProperties: closed(),
		},
	}
}

func (s *Server) processSignal(ctx context.Context, req *mcp.CallToolRequest, in processSignalIn) (*mcp.CallToolResult, error) {
	return s.onProcess(ctx, req, "process signal failed: ", func(ctx context.Context, target session.Request) (any, error) {
		notice, err := s.Calls.Signal(ctx, target, in.ProcessID, in.Signal)
		return processSignalOut{ProcessID: in.ProcessID, Signal: in.Signal, Notice: notice}, err
	})
}
