package mcpserver

import (
	"context"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

type processInputIn struct {
	ProcessID string `json:"process_id"`
	Input     string `json:"input"`
	EOF       bool   `json:"eof"`
	Rows      whole  `json:"rows"`
	Cols      whole  `json:"cols"`
}

type processInputOut struct {
	Written int    `json:"written"`
	Notice  string `json:"notice,omitempty"`
}

func processInputTool() *mcp.Tool {
	return &mcp.Tool{
		Name:        processInputName,
		Title:       "Write to a background process",
		Description: "Write to a background process's standard input or terminal, end its input, or resize its terminal. Control characters are typed as they are: \\u0003 interrupts what runs at a terminal. What comes of it, a terminal's echo included, is read with process_output.",
		Annotations: &mcp.ToolAnnotations{Title: "Write to a background process", DestructiveHint: ptr(true), OpenWorldHint: ptr(true)},
		InputSchema: &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"process_id": processIDSchema(),
				"input":      {Type: "string", Description: "Text to write, with its newline if it is a line. Programs that draw take \\r for the Enter key."},
				"eof":        {Type: "boolean", Description: "Close standard input after that; at a terminal, type the end-of-file character."},
				"rows":       {Type: "integer", Minimum: ptr(1.), Maximum: ptr(float64(client.MaxTerminal)), Description: "Resize the terminal, before input is written. Needs cols."},
				"cols":       {Type: "integer", Minimum: ptr(1.), Maximum: ptr(float64(client.MaxTerminal)), Description: "Needs rows."},
			},
			PropertyOrder:        []string{"process_id", "input", "eof", "rows", "cols"},
			Required:             []string{"process_id"},
			AdditionalProperties: closed(),
		},
		OutputSchema: &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"written": {Type: "integer", Description: "How many bytes of input were taken: fewer than all if the process doesn't read for 5 s, and then eof wasn't passed on either."},
				"notice":  noticeSchema(),
			},
			PropertyOrder:        []string{"written", "notice"},
			Required:             []string{"written"},
			AdditionalProperties: closed(),
		},
	}
}

func (s *Server) processInput(ctx context.Context, req *mcp.CallToolRequest, in processInputIn) (*mcp.CallToolResult, error) {
	input := client.ProcessInput{Data: in.Input, EOF: in.EOF}
	switch {
	case (in.Rows == 0) != (in.Cols == 0):
		return nil, fmt.Errorf("%srows and cols go together", invalidArguments)
	case in.Rows != 0:
		input.Terminal = &client.Terminal{Rows: int(in.Rows), Cols: int(in.Cols)}
	case in.Input == "" && !in.EOF:
		return nil, fmt.Errorf("%snothing to do: give input, eof, or rows and cols", invalidArguments)
	}
	return s.onProcess(ctx, req, "process input failed: ", func(ctx context.Context, target session.Request) (any, error) {
		written, notice, err := s.Calls.Input(ctx, target, in.ProcessID, input)
		return processInputOut{Written: written, Notice: notice}, err
	})
}
