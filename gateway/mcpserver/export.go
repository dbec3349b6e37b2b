package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/dispatch"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

const exportName = "export_artifact"

// exportFailed begins the text of an export that failed.
const exportFailed = "artifact export failed: "

type exportIn struct {
	Path    string `json:"path"`
	Archive bool   `json:"archive"`
	SHA256  bool   `json:"sha256"`
}

type exportOut struct {
	Name     string `json:"name"`
	MIMEType string `json:"mimeType"`
	Size     int64  `json:"size"`
	URI      string `json:"uri"`
	// ExpiresIn is how long URI can be read, in seconds.
	ExpiresIn int    `json:"expires_in"`
	SHA256    string `json:"sha256,omitempty"`
	Notice    string `json:"notice,omitempty"`
}

func exportTool() *mcp.Tool {
	return &mcp.Tool{
		Name:        exportName,
		Title:       "Export a file",
		Description: "Take a file of the session's workspace as it is now, or a directory as an archive, and get a resource URI under which its bytes can be read, whatever happens to the file since, for as long as the result's text says: 5 minutes, unless exports are kept in an artifact store.",
		Annotations: &mcp.ToolAnnotations{Title: "Export a file", ReadOnlyHint: true, DestructiveHint: ptr(false), OpenWorldHint: ptr(false)},
		InputSchema: &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"path":    {Type: "string", MinLength: ptr(1), Description: "A regular file, or with archive a directory, too: absolute in " + workspace + " or relative to it, not to the shell's working directory."},
				"archive": {Type: "boolean", Description: "Export a .tar.gz of the file, or of the directory and all that is in it. false if not given."},
				"sha256":  {Type: "boolean", Description: "Have the SHA-256 in the result of a file larger than 8 MiB, too, which takes the time to read it. false if not given; smaller ones and archives always have it."},
			},
			PropertyOrder:        []string{"path", "archive", "sha256"},
			Required:             []string{"path"},
			AdditionalProperties: closed(),
		},
		OutputSchema: &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"name":       {Type: "string"},
				"mimeType":   {Type: "string"},
				"size":       {Type: "integer", Description: "Bytes."},
				"uri":        {Type: "string", Description: "The resource to read."},
				"expires_in": {Type: "integer", Description: "Seconds for which uri can be read from now on."},
				"sha256":     {Type: "string", Description: "Of the bytes, in hex: up to 8 MiB, of an archive, or if asked for."},
				"notice":     {Type: "string", Description: "What the session lost before this call, and why; what an archive left out."},
			},
			PropertyOrder:        []string{"name", "mimeType", "size", "uri", "expires_in", "sha256", "notice"},
			Required:             []string{"name", "mimeType", "size", "uri", "expires_in"},
			AdditionalProperties: closed(),
		},
	}
}

// export takes a file. Its result holds none of its bytes.
func (s *Server) export(ctx context.Context, req *mcp.CallToolRequest, in exportIn) (*mcp.CallToolResult, error) {
	return s.inSession(ctx, req, exportFailed, func(ctx context.Context, target session.Request) (*mcp.CallToolResult, error) {
		taken, notice, err := s.Calls.Export(ctx, target, client.ExportRequest{Path: in.Path, Archive: in.Archive, Digest: in.SHA256})
		if err != nil {
			return nil, err
		}
		result := exportOut{
			Name: taken.Name, MIMEType: taken.MIMEType, Size: taken.Size,
			URI: taken.Handle.URI(), ExpiresIn: taken.ExpiresIn, SHA256: taken.SHA256, Notice: dispatch.JoinNotices(notice, taken.Notice),
		}
		out, err := encode(result)
		if err != nil {
			return nil, err
		}
		audit.FromContext(ctx).OutBytes = taken.Size
		return &mcp.CallToolResult{
			Content: []mcp.Content{
				&mcp.TextContent{Text: describe(&result)},
				&mcp.ResourceLink{URI: result.URI, Name: result.Name, MIMEType: result.MIMEType, Size: ptr(result.Size)},
			},
			StructuredContent: out,
		}, nil
	})
}

// describe says in words what the structured result says: some hosts show a
// model one of the two only.
func describe(r *exportOut) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Exported %q (%s, %d bytes", r.Name, r.MIMEType, r.Size)
	if r.SHA256 != "" {
		fmt.Fprintf(&b, ", SHA-256 %s", r.SHA256)
	}
	fmt.Fprintf(&b, ") as %s, readable for %s.", r.URI, lifetime(r.ExpiresIn))
	if r.Notice != "" {
		fmt.Fprintf(&b, " Note: %s.", r.Notice)
	}
	return b.String()
}

// lifetime tells seconds in the largest unit that they are whole in. From an hour
// on, to the minute: what a file's way into its store took is no news.
func lifetime(seconds int) string {
	if seconds >= 3600 {
		seconds = (seconds + 30) / 60 * 60
	}
	switch {
	case seconds > 0 && seconds%3600 == 0:
		return counted(int64(seconds/3600), "hour")
	case seconds > 0 && seconds%60 == 0:
		return counted(int64(seconds/60), "minute")
	default:
		return counted(int64(seconds), "second")
	}
}
