package mcpserver

import (
	"context"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

type processListIn struct{}

type processListOut struct {
	Processes []processOut `json:"processes"`
	Notice    string       `json:"notice,omitempty"`
}

// processOut is one process, as process_list shows it.
type processOut struct {
	ProcessID   string    `json:"process_id"`
	Kind        string    `json:"kind"`
	Command     string    `json:"command"`
	Terminal    bool      `json:"terminal,omitempty"`
	Running     bool      `json:"running"`
	ExitCode    *int      `json:"exit_code,omitempty"`
	Started     time.Time `json:"started"`
	OutputStart int64     `json:"output_start"`
	OutputEnd   int64     `json:"output_end"`
	Notice      string    `json:"notice,omitempty"`
}

func processListTool() *mcp.Tool {
	return &mcp.Tool{
		Name:        processListName,
		Title:       "List background processes",
		Description: "List the session's background processes, the oldest first: those that bash started with background, and jobs that commands left behind (cmd &), whose output after their command goes there.",
		Annotations: &mcp.ToolAnnotations{Title: "List background processes", ReadOnlyHint: true, DestructiveHint: ptr(false), OpenWorldHint: ptr(false)},
		InputSchema: &jsonschema.Schema{Type: "object", AdditionalProperties: closed()},
		OutputSchema: &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"processes": {Type: "array", Items: processSchema()},
				"notice":    noticeSchema(),
			},
			PropertyOrder:        []string{"processes", "notice"},
			Required:             []string{"processes"},
			AdditionalProperties: closed(),
		},
	}
}

func processSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type: "object",
		Properties: map[string]*jsonschema.Schema{
			"process_id":   {Type: "string"},
			"kind":         {Type: "string", Description: client.KindProcess + ", or " + client.KindJob + ": one that a command left behind, whose output can be read; signals and input reach it through bash."},
			"command":      {Type: "string", Description: "Its beginning."},
			"terminal":     {Type: "boolean"},
			"running":      {Type: "boolean"},
			"exit_code":    {Type: "integer", Description: "Once it has ended; 128+n for signal n. A job has none."},
			"started":      {Type: "string", Description: "Time, RFC 3339."},
			"output_start": {Type: "integer", Description: "Offset from which output is kept."},
			"output_end":   {Type: "integer", Description: "Offset of its end."},
			"notice":       {Type: "string", Description: "What else happened to it."},
		},
		PropertyOrder:        []string{"process_id", "kind", "command", "terminal", "running", "exit_code", "started", "output_start", "output_end", "notice"},
		Required:             []string{"process_id", "kind", "command", "running", "started", "output_start", "output_end"},
		AdditionalProperties: closed(),
	}
}

func (s *Server) processList(ctx context.Context, req *mcp.CallToolRequest, _ processListIn) (*mcp.CallToolResult, error) {
	return s.onProcess(ctx, req, "process list failed: ", func(ctx context.Context, target session.Request) (any, error) {
		processes, notice, err := s.Calls.Processes(ctx, target)
		out := processListOut{Processes: make([]processOut, 0, len(processes)), Notice: notice}
		for _, p := range processes {
			out.Processes = append(out.Processes, processOut{
				ProcessID: p.ID, Kind: p.Kind, Command: p.Command, Terminal: p.Terminal,
				Running: p.Running, ExitCode: p.ExitCode, Started: p.Started,
				OutputStart: p.OutputStart, OutputEnd: p.OutputEnd, Notice: p.Notice,
			})
		}
		return out, err
	})
}
