package mcpserver

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/splice"
)

const (
	readArtifactName = "read_artifact"
	// readArtifactFailed begins the text of a read that failed.
	readArtifactFailed = "artifact read failed: "
	// defaultArtifactRead is how much of an artifact a model gets that doesn't say.
	defaultArtifactRead = 64 << 10
)

type readArtifactIn struct {
	URI    string  `json:"uri"`
	Offset *offset `json:"offset"`
	Length *whole  `json:"length"`
}

type readArtifactOut struct {
	Content    string `json:"content"`
	Encoding   string `json:"encoding"`
	About      string `json:"about"`
	Name       string `json:"name"`
	MIMEType   string `json:"mime_type"`
	Size       int64  `json:"size"`
	Offset     int64  `json:"offset"`
	NextOffset int64  `json:"next_offset,omitempty"`
}

func readArtifactTool() *mcp.Tool {
	return &mcp.Tool{
		Name:        readArtifactName,
		Title:       "Read an artifact or a log",
		Description: "Read what an artifact:// URI names, a file that export_artifact took or the log of a command, or a part of it: for who can't read resources. Text comes as it is, anything else in base64.",
		Annotations: &mcp.ToolAnnotations{Title: "Read an artifact or a log", ReadOnlyHint: true, DestructiveHint: ptr(false), IdempotentHint: true, OpenWorldHint: ptr(false)},
		InputSchema: &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"uri":    {Type: "string", MinLength: ptr(1), Description: "As export_artifact or bash gave it: " + artifact.URIPrefix + "..."},
				"offset": {Type: "integer", Minimum: ptr(0.), Description: "The first byte to read; 0 if not given. Of a character of text that it cuts, what follows that is read."},
				"length": {Type: "integer", Minimum: ptr(1.), Description: fmt.Sprintf("How many bytes at most: %d if not given, never more than %d. Text ends with a whole character, and has one at least.", defaultArtifactRead, maxRead)},
			},
			PropertyOrder:        []string{"uri", "offset", "length"},
			Required:             []string{"uri"},
			AdditionalProperties: closed(),
		},
		OutputSchema: &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"content":     {Type: "string"},
				"encoding":    {Type: "string", Enum: []any{encodingText, encodingBase64}, Description: "Of content: the text itself, or bytes in base64."},
				"about":       {Type: "string", Description: "In words: what content is, and how to go on."},
				"name":        {Type: "string"},
				"mime_type":   {Type: "string"},
				"size":        {Type: "integer", Description: "Bytes of all of it."},
				"offset":      {Type: "integer", Description: "The byte at which content begins."},
				"next_offset": {Type: "integer", Description: "The offset to go on with, if more follows."},
			},
			PropertyOrder:        []string{"content", "encoding", "about", "name", "mime_type", "size", "offset", "next_offset"},
			Required:             []string{"content", "encoding", "about", "name", "mime_type", "size", "offset"},
			AdditionalProperties: closed(),
		},
	}
}

// errShort is a part of which a sandbox has sent another, though it is there.
var errShort = errors.New("the sandbox sent less than was asked for")

// readArtifactByTool is readArtifact for a model: less at a time, and text is
// never cut within a character. It needs no X-Session-ID either.
func (s *Server) readArtifactByTool(ctx context.Context, req *mcp.CallToolRequest, in readArtifactIn) (*mcp.CallToolResult, error) {
	call := audit.FromContext(ctx)
	handle, part, err := artifact.ParseURI(in.URI)
	if err != nil {
		call.Code = audit.CodeNotFound
		return failure(readArtifactFailed + artifact.ErrNotFound.Error()), nil
	}
	if part != (artifact.Part{}) && (in.Offset != nil || in.Length != nil) {
		return nil, errors.New(invalidArguments + "the URI asks for a part: leave that out, or offset and length")
	}
	if in.Offset != nil {
		part.Offset = int64(*in.Offset)
	}
	if in.Length != nil {
		part.Length = int64(*in.Length)
	}
	if part.Length == 0 {
		part.Length = defaultArtifactRead
	}
	part.Length = min(part.Length, maxRead)

	read, err := s.content(ctx, req.Extra.Header, handle, around(part), maxRead+2*margin)
	if err == nil && part.Offset > 0 && part.Offset >= read.Size {
		call.Code, err = audit.CodeInvalid, artifact.ErrRange
	}
	switch {
	case errors.Is(err, artifact.ErrNotFound):
		return failure(readArtifactFailed + artifact.ErrNotFound.Error()), nil
	case err != nil:
		return failure(readArtifactFailed + err.Error()), nil
	}
	result, err := artifactResult(ctx, handle, read, part)
	if err != nil {
		call.Code = audit.CodeFailed
		return failure(readArtifactFailed + err.Error()), nil
	}
	return result, nil
}

// artifactResult tells a part of what was read around it. Content is there twice,
// since some hosts show a model one of the two only, and held once.
func artifactResult(ctx context.Context, handle artifact.Handle, read *content, part artifact.Part) (*mcp.CallToolResult, error) {
	at := int(part.Offset - read.Offset)
	if at > len(read.data) {
		return nil, errShort
	}
	begin, end, isText := wholeCharacters(read.data, at, int(part.Length))
	if !textual(read.MIMEType) || !isText {
		begin, end, isText = at, min(at+int(part.Length), len(read.data)), false
	}
	data := read.data[begin:end]
	audit.FromContext(ctx).OutBytes = int64(len(data))
	out := readArtifactOut{Encoding: encodingText, Name: read.Name, MIMEType: read.MIMEType, Size: read.Size, Offset: read.Offset + int64(begin)}
	var block mcp.Content
	if isText {
		out.Content = splice.Text(ctx, data)
		block = &mcp.TextContent{Text: splice.Text(ctx, data)}
	} else {
		out.Encoding = encodingBase64
		out.Content = base64.StdEncoding.EncodeToString(splice.Blob(ctx, data))
		block = &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: handle.URI(), MIMEType: read.MIMEType, Blob: splice.Blob(ctx, data)}}
	}
	next := out.Offset + int64(len(data))
	if next < read.Size {
		out.NextOffset = next
	}
	out.About = aboutArtifact(&out, next)
	encoded, err := encode(out)
	if err != nil {
		return nil, err
	}
	blocks := []mcp.Content{&mcp.TextContent{Text: out.About}}
	if len(data) > 0 { // an empty text is no block that says something
		blocks = []mcp.Content{block, blocks[0]}
	}
	return &mcp.CallToolResult{Content: blocks, StructuredContent: encoded}, nil
}

func aboutArtifact(out *readArtifactOut, next int64) string {
	form := "as text"
	if out.Encoding == encodingBase64 {
		form = "in base64"
	}
	switch {
	case out.Size == 0:
		return fmt.Sprintf("%q (%s) is empty.", out.Name, out.MIMEType)
	case out.Offset == 0 && next == out.Size:
		return fmt.Sprintf("All of %q (%s, %s), %s.", out.Name, out.MIMEType, counted(out.Size, "byte"), form)
	case next == out.Offset:
		return fmt.Sprintf("Nothing more of %q (%s, %s).", out.Name, out.MIMEType, counted(out.Size, "byte"))
	}
	about := fmt.Sprintf("Bytes %d to %d of %d of %q (%s), %s.", out.Offset, next-1, out.Size, out.Name, out.MIMEType, form)
	if out.NextOffset > 0 {
		about += fmt.Sprintf(" Go on with offset %d.", out.NextOffset)
	}
	return about
}
