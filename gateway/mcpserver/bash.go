package mcpserver

import (
	"context"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/dispatch"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/gateway/tasks"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

const bashName = "bash"

// execFailed begins the text of a command that was not, or may not have been, run.
const execFailed = "sandbox exec failed: "

type bashIn struct {
	Command        string `json:"command"`
	Timeout        whole  `json:"timeout"`
	MaxOutputBytes whole  `json:"max_output_bytes"`
	Background     bool   `json:"background"`
	Terminal       bool   `json:"terminal"`
}

func bashTool() *mcp.Tool {
	return &mcp.Tool{
		Name:        bashName,
		Title:       "Run a command",
		Description: "Run a command in the session's shell and wait for it. Variables, working directory, functions and files persist from call to call. A command that exceeds its timeout is killed with all that it started, and the shell goes on as it was before. Standard input is empty. For a server, a long build or a program that asks, use background: process_output, process_input, process_signal and process_list reach it then.",
		Annotations: &mcp.ToolAnnotations{Title: "Run a command", DestructiveHint: ptr(true), OpenWorldHint: ptr(true)},
		InputSchema: &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"command":          {Type: "string", MinLength: ptr(1), Description: "Shell source, as one would type it."},
				"timeout":          {Type: "integer", Description: "Seconds that the command may run: 60 if not given, at most 300, unless the sandbox's template says otherwise. A background process has none: it runs until it ends, is signalled, or the session ends."},
				"max_output_bytes": {Type: "integer", Description: fmt.Sprintf("How many bytes of each of stdout and stderr the result may hold: %d if not given, which is also the most unless the sandbox's template says otherwise. Of more, it holds the beginning and the end, and between them a line that names a file with the whole, for commands such as grep and tail.", client.DefaultOutputBytes)},
				"background":       {Type: "boolean", Description: "Start the command as a process of its own, in the shell's working directory and with its exported variables and functions, and return at once with its process_id. It takes no nohup and no &, and changes nothing in the shell."},
				"terminal":         {Type: "boolean", Description: "With background: give the process a terminal of 24 by 80, for programs that ask or draw. Without one, many programs write their output late, in large pieces (python does without -u)."},
			},
			PropertyOrder:        []string{"command", "timeout", "max_output_bytes", "background", "terminal"},
			Required:             []string{"command"},
			AdditionalProperties: closed(),
		},
		OutputSchema: bashOutSchema(),
	}
}

// bash runs a command. One that ran and failed is an error with everything that
// a success has; one that was not run is an error with text only.
func (s *Server) bash(ctx context.Context, req *mcp.CallToolRequest, in bashIn) (*mcp.CallToolResult, error) {
	if in.Terminal && !in.Background {
		return nil, fmt.Errorf("%sterminal needs background: a command that is waited for has none", invalidArguments)
	}
	return s.inSession(ctx, req, execFailed, func(ctx context.Context, target session.Request) (*mcp.CallToolResult, error) {
		if in.Background {
			return s.background(ctx, target, in)
		}
		return s.run(ctx, req, target, in)
	})
}

// run runs a command and waits for it, or for as long as a client that knows tasks
// is to wait.
func (s *Server) run(ctx context.Context, req *mcp.CallToolRequest, target session.Request, in bashIn) (*mcp.CallToolResult, error) {
	command := dispatch.Command{Source: in.Command, Timeout: int(in.Timeout), MaxOutputBytes: int(in.MaxOutputBytes)}
	var result *client.ExecResult
	var err error
	if offer := tasks.OfferOf(ctx); offer != nil {
		var task *mcp.CallToolResult
		if result, task, err = s.runOrTake(ctx, offer, target, command); task != nil {
			return task, nil
		}
	} else {
		output, stop := report(ctx, req)
		defer stop()
		command.Output = output
		result, err = s.Calls.Exec(ctx, target, command)
	}
	if err != nil {
		return nil, err
	}
	call := audit.FromContext(ctx)
	call.OutBytes = int64(len(result.Stdout) + len(result.Stderr))
	if result.ExitCode != 0 {
		call.Code = audit.CodeExit
	}
	return bashResult(target.Key, result)
}

// background starts a process, which outlives the call. It needs no timeout, and
// its output is read elsewhere.
func (s *Server) background(ctx context.Context, target session.Request, in bashIn) (*mcp.CallToolResult, error) {
	process := client.ProcessRequest{Command: in.Command}
	if in.Terminal {
		process.Terminal = &client.Terminal{}
	}
	if offer := tasks.OfferOf(ctx); offer != nil {
		return s.take(ctx, offer, target, process)
	}
	began := time.Now()
	started, notice, err := s.Calls.Start(ctx, target, process)
	if err != nil {
		return nil, err
	}
	return answer(bashOut{
		DurationMS: time.Since(began).Milliseconds(),
		ProcessID:  started.ID,
		Notice:     dispatch.JoinNotices(notice, started.Notice),
	})
}
