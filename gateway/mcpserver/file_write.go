package mcpserver

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/session"
)

const writeFileFailed = "file write failed: "

type writeFileIn struct {
	Path     string `json:"path"`
	Content  string `json:"content"`
	Encoding string `json:"encoding"`
}

type writeFileOut struct {
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	Mode    string `json:"mode"`
	Created bool   `json:"created"`
	Notice  string `json:"notice,omitempty"`
}

func writeFileTool() *mcp.Tool {
	return &mcp.Tool{
		Name:        writeFileName,
		Title:       "Write a file",
		Description: "Write a file of the session, new or in place of what was there: all of it at once, so that nobody sees a part. Directories that are missing are made; a file that was there keeps its permissions. A message may have 4 MiB; a larger file comes in by HTTP, POST /sessions/{id}/files. To change a part of a file, use " + editFileName + ".",
		Annotations: &mcp.ToolAnnotations{Title: "Write a file", DestructiveHint: ptr(true), IdempotentHint: true, OpenWorldHint: ptr(false)},
		InputSchema: &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"path":     filePathSchema("The file."),
				"content":  {Type: "string", Description: "What the file is to hold, to the byte: text ends with a newline if it is given one."},
				"encoding": {Type: "string", Enum: []any{encodingText, encodingBase64}, Description: "Of content: utf-8, the text itself, if not given; base64 for bytes that are no text."},
			},
			PropertyOrder:        []string{"path", "content", "encoding"},
			Required:             []string{"path", "content"},
			AdditionalProperties: closed(),
		},
		OutputSchema: &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"path":    {Type: "string"},
				"size":    {Type: "integer", Description: "Bytes."},
				"mode":    {Type: "string", Description: "Permissions, as four octal digits."},
				"created": {Type: "boolean", Description: "The file is new."},
				"notice":  noticeSchema(),
			},
			PropertyOrder:        []string{"path", "size", "mode", "created", "notice"},
			Required:             []string{"path", "size", "mode", "created"},
			AdditionalProperties: closed(),
		},
	}
}

func (s *Server) writeFile(ctx context.Context, req *mcp.CallToolRequest, in writeFileIn) (*mcp.CallToolResult, error) {
	data := []byte(in.Content)
	if in.Encoding == encodingBase64 {
		decoded, err := base64.StdEncoding.Strict().DecodeString(in.Content)
		if err != nil {
			return nil, fmt.Errorf("%scontent is not base64: %w", invalidArguments, err)
		}
		data = decoded
	}
	return s.onFile(ctx, req, writeFileFailed, func(ctx context.Context, target session.Request) (*mcp.CallToolResult, error) {
		written, notice, err := s.Calls.WriteFile(ctx, target, in.Path, data)
		if err != nil {
			return nil, err
		}
		return answer(writeFileOut{
			Path: written.Path, Size: written.Size, Mode: written.Mode, Created: written.Created, Notice: notice,
		})
	})
}
