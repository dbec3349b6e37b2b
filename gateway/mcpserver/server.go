// Package mcpserver is what an agent sees of the gateway: the tools bash,
// process_output, process_input, process_signal, process_list, read_file,
// write_file, edit_file, list_files, export_artifact and read_artifact, the
// resources artifact://berth/{token}, and tasks.
//
// The server is stateless and one for all: what a call needs comes with it, and
// the session from the X-Session-ID header alone.
//
// A request passes, in this order: recover (a panic is one failed call), follow
// (it ends with its caller), record (audit, metrics, span), gate (what was not
// declared is not there), rate (how many at a time), tasks (offered to
// clients that declared them), and the tool.
package mcpserver

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/authz"
	"github.com/berth-dev/berth/gateway/dispatch"
	"github.com/berth-dev/berth/gateway/metrics"
	"github.com/berth-dev/berth/gateway/places"
	"github.com/berth-dev/berth/gateway/room"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/gateway/tasks"
	"github.com/berth-dev/berth/gateway/tracing"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// MCP methods that the middleware knows.
const (
	methodCallTool     = "tools/call"
	methodReadResource = "resources/read"
)

// Calls reaches the sessions' agents.
type Calls interface {
	Files
	Tasks
	Exec(ctx context.Context, req session.Request, command dispatch.Command) (*client.ExecResult, error)
	Start(ctx context.Context, req session.Request, process client.ProcessRequest) (p *client.Process, notice string, err error)
	Processes(ctx context.Context, req session.Request) (all []client.Process, notice string, err error)
	Output(ctx context.Context, req session.Request, id string, q client.OutputQuery) (o *client.ProcessOutput, notice string, err error)
	Input(ctx context.Context, req session.Request, id string, input client.ProcessInput) (written int, notice string, err error)
	Signal(ctx context.Context, req session.Request, id, signal string) (notice string, err error)
	Export(ctx context.Context, req session.Request, request client.ExportRequest) (e *dispatch.Export, notice string, err error)
}

// Artifacts opens artifacts for whoever may read them.
type Artifacts interface {
	Open(ctx context.Context, header http.Header, handle artifact.Handle, part artifact.Part) (*artifact.Reading, error)
}

// Server holds what the tools need.
type Server struct {
	Calls      Calls
	Artifacts  Artifacts
	Authorizer authz.Authorizer
	Namespaces session.Namespaces
	Metrics    *metrics.Metrics
	Tracer     *tracing.Tracer
	// TaskAfter is how long a command may take before it becomes a task, if its client
	// knows tasks. Most are faster, and cost one request.
	TaskAfter time.Duration
	// Places bounds the calls under way.
	Places  *places.Places
	Log     *slog.Logger
	Version string
	// MaxBody bounds a request body, in bytes.
	MaxBody int64

	reads *room.Room
	tasks tasks.Source
}

// workspace is where each sandbox has its files: the controller sees to it.
const workspace = "/workspace"

const instructions = `Each session is a sandbox of its own with a persistent shell. ` +
	`bash runs a command in it: variables, working directory and files stay for the next call. ` +
	`With background it starts a process that runs on: process_output reads what it writes, process_input writes to it, process_signal ends it, process_list shows all. ` +
	`read_file, write_file, edit_file and list_files reach its files without a command. ` +
	`export_artifact hands a file of ` + workspace + `, or a directory as an archive, over as a resource that can be read for as long as the result says; read_artifact reads it for who can't read resources.`

// Handler returns the server of both protocol eras, for one URL.
func (s *Server) Handler() http.Handler {
	s.reads = room.New(readBudget, readsEach)
	options := &mcp.ServerOptions{
		Instructions: instructions,
		Logger:       slog.New(slog.DiscardHandler),
		// Neither list ever changes, so nothing is promised about changes.
		Capabilities: &mcp.ServerCapabilities{
			Tools:     &mcp.ToolCapabilities{},
			Resources: &mcp.ResourceCapabilities{},
		},
		SetCacheable: private,
	}
	extend(options)
	options.Capabilities.AddExtension(tasks.Extension, nil)
	server := mcp.NewServer(&mcp.Implementation{Name: "berth", Title: "Berth", Version: s.Version}, options)
	server.AddReceivingMiddleware(tasks.Middleware) // the innermost
	server.AddReceivingMiddleware(s.recoverPanic, follow, s.record, gate(options.Capabilities), s.rate)
	addTool(server, bashTool(), s.bash)
	addTool(server, processOutputTool(), s.processOutput)
	addTool(server, processInputTool(), s.processInput)
	addTool(server, processSignalTool(), s.processSignal)
	addTool(server, processListTool(), s.processList)
	addTool(server, readFileTool(), s.readFile)
	addTool(server, writeFileTool(), s.writeFile)
	addTool(server, editFileTool(), s.editFile)
	addTool(server, listFilesTool(), s.listFiles)
	addTool(server, exportTool(), s.export)
	addTool(server, readArtifactTool(), s.readArtifactByTool)
	server.AddResourceTemplate(&mcp.ResourceTemplate{
		Name:        "artifact",
		Title:       "Exported file or log",
		Description: "A file that export_artifact took out of a session's workspace, or the log of a command whose output was cut. At most 8 MiB per read: offset and length, in bytes, give a part.",
		URITemplate: artifact.URITemplate,
	}, s.readArtifact)
	s.serveTasks(server, podTasks{s})
	s.addFixtures(server)
	return s.listening(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		Stateless:                    true,
		PropagateRequestCancellation: true,
		MaxRequestBodyBytes:          s.MaxBody,
		// package front has an allow-list of its own.
		DisableLocalhostProtection: true,
		Logger:                     slog.New(slog.DiscardHandler),
	}))
}

// private keeps one caller's file out of everybody's cache.
func private(_ context.Context, req mcp.Request, c *mcp.Cacheable) {
	if _, ok := req.(*mcp.ReadResourceRequest); ok {
		c.CacheScope = "private"
	}
}
