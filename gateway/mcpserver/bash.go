package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"math"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/authz"
	"github.com/berth-dev/berth/gateway/dispatch"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

const bashName = "bash"

// execFailed begins the text of a command that was not, or may not have been, run.
const execFailed = "sandbox exec failed: "

type bashIn struct {
	Command        string `json:"command"`
	Timeout        whole  `json:"timeout"`
	MaxOutputBytes whole  `json:"max_output_bytes"`
}

// bashOut is the structured result, and its JSON the text.
type bashOut struct {
	Stdout       string `json:"stdout"`
	Stderr       string `json:"stderr"`
	ExitCode     int    `json:"exit_code"`
	DurationMS   int64  `json:"duration_ms"`
	TimedOut     bool   `json:"timed_out,omitempty"`
	Truncated    bool   `json:"truncated,omitempty"`
	OmittedBytes int64  `json:"omitted_bytes,omitempty"`
	Notice       string `json:"notice,omitempty"`
}

// whole is an integer as JSON Schema means it: 60, 60.0 and 6e1 are the same.
// What is beyond an int32 is cut to it; every limit is far below.
type whole int

// UnmarshalJSON implements json.Unmarshaler.
func (w *whole) UnmarshalJSON(data []byte) error {
	var f float64
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	*w = whole(min(max(f, math.MinInt32), math.MaxInt32))
	return nil
}

func bashTool() *mcp.Tool {
	return &mcp.Tool{
		Name:        bashName,
		Title:       "Run a command",
		Description: "Run a command in the session's shell. Variables, working directory, functions and files persist from call to call. A command that exceeds its timeout is killed and the shell goes on as it was before.",
		Annotations: &mcp.ToolAnnotations{Title: "Run a command", DestructiveHint: ptr(true), OpenWorldHint: ptr(true)},
		InputSchema: &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"command":          {Type: "string", MinLength: ptr(1), Description: "Shell source, as one would type it."},
				"timeout":          {Type: "integer", Description: "Seconds that the command may run: 60 if not given, at most 300, unless the sandbox's template says otherwise."},
				"max_output_bytes": {Type: "integer", Description: "How much of each of stdout and stderr the result may hold. Of more, it holds the beginning and the end."},
			},
			PropertyOrder:        []string{"command", "timeout", "max_output_bytes"},
			Required:             []string{"command"},
			AdditionalProperties: closed(),
		},
		OutputSchema: &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"stdout":        {Type: "string"},
				"stderr":        {Type: "string"},
				"exit_code":     {Type: "integer", Description: "The shell's status; 128+n for signal n, 137 for a command that was killed at its timeout."},
				"duration_ms":   {Type: "integer"},
				"timed_out":     {Type: "boolean"},
				"truncated":     {Type: "boolean"},
				"omitted_bytes": {Type: "integer", Description: "How many bytes of output are left out."},
				"notice":        {Type: "string", Description: "What the session lost before this command, and why."},
			},
			PropertyOrder:        []string{"stdout", "stderr", "exit_code", "duration_ms", "timed_out", "truncated", "omitted_bytes", "notice"},
			Required:             []string{"stdout", "stderr", "exit_code", "duration_ms"},
			AdditionalProperties: closed(),
		},
	}
}

// bash runs a command. One that ran and failed is an error with everything that
// a success has; one that was not run is an error with text only.
func (s *Server) bash(ctx context.Context, req *mcp.CallToolRequest, in bashIn) (*mcp.CallToolResult, error) {
	call := audit.FromContext(ctx)
	target, err := s.request(ctx, req.Extra.Header)
	if err != nil {
		return nil, err
	}
	if err := s.authorize(ctx, target, authz.Create); err != nil {
		return failure(execFailed + err.Error()), nil
	}
	result, err := s.Calls.Exec(ctx, target, dispatch.Command{
		Source:         in.Command,
		Timeout:        int(in.Timeout),
		MaxOutputBytes: int(in.MaxOutputBytes),
	})
	if err != nil {
		call.Code = codeOf(ctx, err)
		return failure(execFailed + err.Error()), nil
	}
	call.OutBytes = int64(len(result.Stdout) + len(result.Stderr))
	call.Code = audit.CodeOK
	if result.ExitCode != 0 {
		call.Code = audit.CodeExit
	}
	out, err := encode(bashOut{
		Stdout: result.Stdout, Stderr: result.Stderr,
		ExitCode: result.ExitCode, DurationMS: result.DurationMS,
		TimedOut: result.TimedOut, Truncated: result.Truncated, OmittedBytes: result.OmittedBytes,
		Notice: result.Notice,
	})
	if err == nil && wireSize(out) > client.MaxResult {
		// The agent sees to it that its results fit. This is not one's word.
		err = errors.New("the sandbox's agent gave an answer that can't be used")
	}
	if err != nil {
		call.Code = audit.CodeFailed
		return failure(execFailed + err.Error()), nil
	}
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: string(out)}},
		StructuredContent: out,
		IsError:           result.ExitCode != 0,
	}, nil
}

// wireSize is how many bytes a result is on the wire, where it is twice: as it
// is and as a JSON string, and the SDK escapes < > & in both.
func wireSize(out json.RawMessage) int {
	size := 2 * len(out)
	for _, c := range out {
		switch c {
		case '"', '\\':
			size++
		case '<', '>', '&':
			size += 2 * len(`u003c`)
		}
	}
	return size
}
