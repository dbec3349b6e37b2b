package mcpserver

import (
	"context"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

type processOutputIn struct {
	ProcessID string `json:"process_id"`
	Offset    offset `json:"offset"`
	Wait      whole  `json:"wait"`
	Limit     whole  `json:"limit"`
}

type processOutputOut struct {
	Output     string `json:"output"`
	Offset     int64  `json:"offset"`
	NextOffset int64  `json:"next_offset"`
	Running    bool   `json:"running"`
	ExitCode   *int   `json:"exit_code,omitempty"`
	Notice     string `json:"notice,omitempty"`
}

func processOutputTool() *mcp.Tool {
	return &mcp.Tool{
		Name:        processOutputName,
		Title:       "Read a background process's output",
		Description: "Read what a background process wrote, stdout and stderr together, from an offset on. To follow it, repeat with offset set to next_offset and with wait, until running is false and output is empty. The newest 4 MiB are kept: a command that writes more and needs it all is best sent to a file.",
		Annotations: &mcp.ToolAnnotations{Title: "Read a background process's output", ReadOnlyHint: true, DestructiveHint: ptr(false), OpenWorldHint: ptr(false)},
		InputSchema: &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"process_id": processIDSchema(),
				"offset":     {Type: "integer", Description: "Bytes from the beginning of its output; negative: from the end, as -2000 for the last 2000. 0 if not given."},
				"wait":       {Type: "integer", Description: fmt.Sprintf("While there is no output beyond offset: seconds to wait for some, or for the process's end. 0 if not given, at most %d.", client.MaxOutputWait)},
				"limit":      {Type: "integer", Description: fmt.Sprintf("The most bytes to return: %d if not given, at most %d.", client.DefaultOutputChunk, client.MaxOutputChunk)},
			},
			PropertyOrder:        []string{"process_id", "offset", "wait", "limit"},
			Required:             []string{"process_id"},
			AdditionalProperties: closed(),
		},
		OutputSchema: &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"output":      {Type: "string"},
				"offset":      {Type: "integer", Description: "Where output begins: later than asked if older output is no longer kept."},
				"next_offset": {Type: "integer", Description: "Where to go on."},
				"running":     {Type: "boolean"},
				"exit_code":   {Type: "integer", Description: "Once the process has ended; 128+n for signal n."},
				"notice":      noticeSchema(),
			},
			PropertyOrder:        []string{"output", "offset", "next_offset", "running", "exit_code", "notice"},
			Required:             []string{"output", "offset", "next_offset", "running"},
			AdditionalProperties: closed(),
		},
	}
}

func (s *Server) processOutput(ctx context.Context, req *mcp.CallToolRequest, in processOutputIn) (*mcp.CallToolResult, error) {
	return s.onProcess(ctx, req, "process output failed: ", func(ctx context.Context, target session.Request) (any, error) {
		o, notice, err := s.Calls.Output(ctx, target, in.ProcessID, client.OutputQuery{
			Offset: int64(in.Offset),
			Limit:  min(max(int(in.Limit), 0), client.MaxOutputChunk),
			Wait:   time.Duration(min(max(in.Wait, 0), client.MaxOutputWait)) * time.Second,
		})
		if err != nil {
			return nil, err
		}
		audit.FromContext(ctx).OutBytes = int64(len(o.Output))
		return processOutputOut{
			Output: o.Output, Offset: o.Offset, NextOffset: o.NextOffset,
			Running: o.Running, ExitCode: o.ExitCode, Notice: notice,
		}, nil
	})
}
