package mcpserver

import (
	"context"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

const editFileFailed = "file edit failed: "

type editFileIn struct {
	Path  string        `json:"path"`
	Edits []client.Edit `json:"edits"`
}

type editFileOut struct {
	Path         string    `json:"path"`
	Size         int64     `json:"size"`
	Replacements int       `json:"replacements"`
	Edits        []editOut `json:"edits"`
	Notice       string    `json:"notice,omitempty"`
}

type editOut struct {
	Replacements int   `json:"replacements"`
	Line         int64 `json:"line"`
}

func editFileTool() *mcp.Tool {
	return &mcp.Tool{
		Name:        editFileName,
		Title:       "Edit a file",
		Description: "Replace pieces of a text file of the session: each old by its new, one edit after the other, all of them or none. old must be in the file exactly once, to the byte, indentation and line ends too: give enough of what is around it, or replace_all. Nothing in it is a pattern.",
		Annotations: &mcp.ToolAnnotations{Title: "Edit a file", DestructiveHint: ptr(true), OpenWorldHint: ptr(false)},
		InputSchema: &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"path": filePathSchema("The file."),
				"edits": {Type: "array", MinItems: ptr(1), MaxItems: ptr(client.MaxEdits), Description: "Made in this order, each to what those before it left.", Items: &jsonschema.Schema{
					Type: "object",
					Properties: map[string]*jsonschema.Schema{
						"old":         {Type: "string", MinLength: ptr(1), Description: "What is there."},
						"new":         {Type: "string", Description: "What is to be there; empty takes old away."},
						"replace_all": {Type: "boolean", Description: "Replace old wherever it is, once at least. false if not given."},
					},
					PropertyOrder:        []string{"old", "new", "replace_all"},
					Required:             []string{"old", "new"},
					AdditionalProperties: closed(),
				}},
			},
			PropertyOrder:        []string{"path", "edits"},
			Required:             []string{"path", "edits"},
			AdditionalProperties: closed(),
		},
		OutputSchema: editFileOutSchema(),
	}
}

func editFileOutSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type: "object",
		Properties: map[string]*jsonschema.Schema{
			"path":         {Type: "string"},
			"size":         {Type: "integer", Description: "Bytes of the file now."},
			"replacements": {Type: "integer", Description: "How many, by all edits."},
			"edits": {Type: "array", Description: "What became of each edit, in order.", Items: &jsonschema.Schema{
				Type: "object",
				Properties: map[string]*jsonschema.Schema{
					"replacements": {Type: "integer"},
					"line":         {Type: "integer", Description: "The line in which the first one began."},
				},
				PropertyOrder:        []string{"replacements", "line"},
				Required:             []string{"replacements", "line"},
				AdditionalProperties: closed(),
			}},
			"notice": noticeSchema(),
		},
		PropertyOrder:        []string{"path", "size", "replacements", "edits", "notice"},
		Required:             []string{"path", "size", "replacements", "edits"},
		AdditionalProperties: closed(),
	}
}

func (s *Server) editFile(ctx context.Context, req *mcp.CallToolRequest, in editFileIn) (*mcp.CallToolResult, error) {
	return s.onFile(ctx, req, editFileFailed, func(ctx context.Context, target session.Request) (*mcp.CallToolResult, error) {
		edited, notice, err := s.Calls.EditFile(ctx, target, in.Path, in.Edits)
		if err != nil {
			return nil, err
		}
		out := editFileOut{Path: edited.Path, Size: edited.Size, Edits: []editOut{}, Notice: notice}
		for _, made := range edited.Edits {
			out.Replacements += made.Replaced
			out.Edits = append(out.Edits, editOut{made.Replaced, made.Line})
		}
		return answer(out)
	})
}
