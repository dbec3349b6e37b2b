package mcpserver

import (
	"context"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

const readFileFailed = "file read failed: "

// Bounds of one read. Each byte of text is at most 12 in a result, which has it
// twice: so MaxResult holds the largest.
const (
	defaultReadLines = 2000
	defaultReadBytes = 64 << 10
	maxReadBytes     = 512 << 10
)

type readFileIn struct {
	Path       string  `json:"path"`
	Offset     offset  `json:"offset"`
	Limit      whole   `json:"limit"`
	ByteOffset *offset `json:"byte_offset"`
	ByteLimit  *whole  `json:"byte_limit"`
}

func readFileTool() *mcp.Tool {
	return &mcp.Tool{
		Name:        readFileName,
		Title:       "Read a file",
		Description: "Read a text file of the session, or some of its lines. The result's text is the file's, as it is, without line numbers; what follows it says which lines these are and how to go on. With byte_offset or byte_limit, read bytes of any file instead: what is not text comes in base64.",
		Annotations: &mcp.ToolAnnotations{Title: "Read a file", ReadOnlyHint: true, DestructiveHint: ptr(false), IdempotentHint: true, OpenWorldHint: ptr(false)},
		InputSchema: &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"path":        filePathSchema("The file."),
				"offset":      {Type: "integer", Minimum: ptr(1.), Description: "The first line to read; 1, which is the file's first, if not given."},
				"limit":       {Type: "integer", Minimum: ptr(1.), Description: fmt.Sprintf("How many lines at most: %d if not given. A result holds at most %d bytes of lines, and of a line longer than %d bytes the beginning.", defaultReadLines, client.DefaultFileRead, client.MaxFileLine)},
				"byte_offset": {Type: "integer", Minimum: ptr(0.), Description: "Instead of lines: the first byte to read; 0 is the file's first. Of a character of text that it cuts, what follows that is read."},
				"byte_limit":  {Type: "integer", Minimum: ptr(1.), Description: fmt.Sprintf("How many bytes at most, instead of lines: %d if not given, never more than %d. Text ends with a whole character, and has one at least.", defaultReadBytes, maxReadBytes)},
			},
			PropertyOrder:        []string{"path", "offset", "limit", "byte_offset", "byte_limit"},
			Required:             []string{"path"},
			AdditionalProperties: closed(),
		},
		OutputSchema: readFileOutSchema(),
	}
}

func (s *Server) readFile(ctx context.Context, req *mcp.CallToolRequest, in readFileIn) (*mcp.CallToolResult, error) {
	inBytes := in.ByteOffset != nil || in.ByteLimit != nil
	if inBytes && (in.Offset != 0 || in.Limit != 0) {
		return nil, fmt.Errorf("%soffset and limit are lines, byte_offset and byte_limit bytes: give those of one kind", invalidArguments)
	}
	return s.onFile(ctx, req, readFileFailed, func(ctx context.Context, target session.Request) (*mcp.CallToolResult, error) {
		out, err := s.readPart(ctx, target, in, inBytes)
		if err != nil {
			return nil, err
		}
		return fileResult(ctx, out)
	})
}

func (s *Server) readPart(ctx context.Context, target session.Request, in readFileIn, inBytes bool) (*readFileOut, error) {
	if inBytes {
		return s.readBytes(ctx, target, in)
	}
	lines := client.Lines{First: int64(in.Offset), Count: int64(in.Limit)}
	if lines.Count == 0 {
		lines.Count = defaultReadLines
	}
	read, notice, err := s.Calls.ReadLines(ctx, target, in.Path, lines)
	if err != nil {
		return nil, err
	}
	return linesOut(read, notice), nil
}

// readBytes reads a part, and a few bytes around it to see characters whole.
func (s *Server) readBytes(ctx context.Context, target session.Request, in readFileIn) (*readFileOut, error) {
	part := artifact.Part{Length: defaultReadBytes}
	if in.ByteOffset != nil {
		part.Offset = int64(*in.ByteOffset)
	}
	if in.ByteLimit != nil {
		part.Length = min(int64(*in.ByteLimit), maxReadBytes)
	}
	asked := around(part)
	read, notice, err := s.Calls.ReadBytes(ctx, target, in.Path, client.Span{Offset: asked.Offset, Length: asked.Length})
	if err != nil {
		return nil, err
	}
	if part.Offset > 0 && part.Offset >= read.Size { // as an agent says it of what is farther beyond
		return nil, fmt.Errorf("the file has %d bytes: there is no byte %d", read.Size, part.Offset)
	}
	return bytesOut(read, part, notice)
}

// fileResult has a file's text as its text, and what is to be said of it after
// that. Some hosts show a model the structured result alone: it has both.
func fileResult(ctx context.Context, out *readFileOut) (*mcp.CallToolResult, error) {
	encoded, err := encodeBounded(out)
	if err != nil {
		return nil, err
	}
	about := out.About
	if out.Notice != "" {
		about += " Note: " + out.Notice + "."
	}
	var text []mcp.Content
	if out.Content != "" { // an empty text is no block that says something
		text = append(text, &mcp.TextContent{Text: out.Content})
	}
	audit.FromContext(ctx).OutBytes = int64(len(out.Content))
	return &mcp.CallToolResult{
		Content:           append(text, &mcp.TextContent{Text: about}),
		StructuredContent: encoded,
	}, nil
}
