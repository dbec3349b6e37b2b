package mcpserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// Tools for the files of the session. Like bash, they make its sandbox if there
// is none.
const (
	readFileName  = "read_file"
	writeFileName = "write_file"
	editFileName  = "edit_file"
	listFilesName = "list_files"
)

// Files reaches the files of the sessions' sandboxes.
type Files interface {
	ReadLines(ctx context.Context, req session.Request, path string, lines client.Lines) (c *client.FileContent, notice string, err error)
	ReadBytes(ctx context.Context, req session.Request, path string, span client.Span) (c *client.FileContent, notice string, err error)
	WriteFile(ctx context.Context, req session.Request, path string, data []byte) (w *client.WrittenFile, notice string, err error)
	EditFile(ctx context.Context, req session.Request, path string, edits []client.Edit) (e *client.EditedFile, notice string, err error)
	ListFiles(ctx context.Context, req session.Request, listing client.Listing) (l *client.FileList, notice string, err error)
}

// filePathSchema is a path as all file tools take it. What it may reach is the
// agent's to judge, which follows it name by name.
func filePathSchema(of string) *jsonschema.Schema {
	return &jsonschema.Schema{
		Type: "string", MinLength: ptr(1), MaxLength: ptr(client.MaxPath),
		Description: of + " Relative to " + workspace + ", not to the shell's working directory, or absolute in it or in another directory that the sandbox's template opens. Links are followed within these alone.",
	}
}

// onFile runs a call about the session's files.
func (s *Server) onFile(ctx context.Context, req *mcp.CallToolRequest, failed string, ask func(context.Context, session.Request) (*mcp.CallToolResult, error)) (*mcp.CallToolResult, error) {
	return s.inSession(ctx, req, failed, func(ctx context.Context, target session.Request) (*mcp.CallToolResult, error) {
		result, err := ask(ctx, target)
		return result, advised(err)
	})
}

// advised ends the text of a refusal for which a tool other than the one that was
// called is the way.
func advised(err error) error {
	if errors.Is(err, client.ErrNotText) {
		return fmt.Errorf("%w; its bytes are read, in base64, with byte_offset, or handed over whole with %s", err, exportName)
	}
	return err
}
