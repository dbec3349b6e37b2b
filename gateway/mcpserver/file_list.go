package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/cancellation"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

const listFilesFailed = "file list failed: "

// defaultEntries is how many entries a list has that is asked for no number.
const defaultEntries = 500

type listFilesIn struct {
	Path   string `json:"path"`
	Depth  whole  `json:"depth"`
	Glob   string `json:"glob"`
	Hidden bool   `json:"hidden"`
	Limit  whole  `json:"limit"`
	After  string `json:"after"`
}

type listFilesOut struct {
	Path      string      `json:"path"`
	Entries   []listEntry `json:"entries"`
	Truncated bool        `json:"truncated,omitempty"`
	Next      string      `json:"next,omitempty"`
	Notice    string      `json:"notice,omitempty"`
}

type listEntry struct {
	Path     string `json:"path"`
	Type     string `json:"type"`
	Size     *int64 `json:"size,omitempty"`
	Modified string `json:"modified"`
	Target   string `json:"target,omitempty"`
}

func listFilesTool() *mcp.Tool {
	return &mcp.Tool{
		Name:        listFilesName,
		Title:       "List files",
		Description: "List what is in a directory of the session: files with their sizes, directories, links, each by the path that the other file tools take. With depth also what is below; with glob what matches it, at any depth, as in {\"glob\": \"**/*.go\"}.",
		Annotations: &mcp.ToolAnnotations{Title: "List files", ReadOnlyHint: true, DestructiveHint: ptr(false), IdempotentHint: true, OpenWorldHint: ptr(false)},
		InputSchema: &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"path":   filePathSchema("The directory; the workspace if not given."),
				"depth":  {Type: "integer", Minimum: ptr(1.), Description: fmt.Sprintf("How deep to go, at most %d. If not given: as deep as glob needs, and without one 1, what is in the directory itself.", client.MaxListDepth)},
				"glob":   {Type: "string", MinLength: ptr(1), MaxLength: ptr(client.MaxGlob), Description: "List only what matches, by its path below the directory: * ? [] {a,b}, and ** for any number of directories."},
				"hidden": {Type: "boolean", Description: "Go into directories whose names begin with a dot, too, such as .git. false if not given."},
				"limit":  {Type: "integer", Minimum: ptr(1.), Description: fmt.Sprintf("How many entries at most: %d if not given, never more than %d.", defaultEntries, client.MaxListEntries)},
				"after":  {Type: "string", MinLength: ptr(1), Description: "Go on after another list: its next, with all else as it was."},
			},
			PropertyOrder:        []string{"path", "depth", "glob", "hidden", "limit", "after"},
			AdditionalProperties: closed(),
		},
		OutputSchema: listFilesOutSchema(),
	}
}

func listFilesOutSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type: "object",
		Properties: map[string]*jsonschema.Schema{
			"path": {Type: "string", Description: "The directory; . is the workspace."},
			"entries": {Type: "array", Description: "By name; what is in a directory comes right after it.", Items: &jsonschema.Schema{
				Type: "object",
				Properties: map[string]*jsonschema.Schema{
					"path":     {Type: "string"},
					"type":     {Type: "string", Description: "file, directory, symlink, fifo, socket or device."},
					"size":     {Type: "integer", Description: "Bytes of a file."},
					"modified": {Type: "string"},
					"target":   {Type: "string", Description: "Where a link leads, as it is written in it."},
				},
				PropertyOrder:        []string{"path", "type", "size", "modified", "target"},
				Required:             []string{"path", "type", "modified"},
				AdditionalProperties: closed(),
			}},
			"truncated": {Type: "boolean", Description: "There may be more."},
			"next":      {Type: "string", Description: "The after to go on with, if that is possible."},
			"notice":    noticeSchema(),
		},
		PropertyOrder:        []string{"path", "entries", "truncated", "next", "notice"},
		Required:             []string{"path", "entries"},
		AdditionalProperties: closed(),
	}
}

func (s *Server) listFiles(ctx context.Context, req *mcp.CallToolRequest, in listFilesIn) (*mcp.CallToolResult, error) {
	listing := client.Listing{
		Path: in.Path, Depth: int(in.Depth), Glob: in.Glob, Hidden: in.Hidden,
		Limit: min(int(in.Limit), client.MaxListEntries), After: in.After,
	}
	if listing.Limit == 0 {
		listing.Limit = defaultEntries
	}
	return s.onFile(ctx, req, listFilesFailed, func(ctx context.Context, target session.Request) (*mcp.CallToolResult, error) {
		out, err := s.listFitting(ctx, target, listing)
		if err != nil {
			return nil, err
		}
		audit.FromContext(ctx).OutBytes = int64(len(out))
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(out)}}, StructuredContent: out}, nil
	})
}

// listFitting asks for fewer entries until they fit the wire, where some names
// take twelve times their bytes. The agent alone can tell where to go on then.
func (s *Server) listFitting(ctx context.Context, target session.Request, listing client.Listing) (json.RawMessage, error) {
	lost := ""
	for {
		// The room of a list that is too long is given back before the next is
		// waited for: several calls would wait for each other's.
		attempt, drop := cancellation.Attempt(ctx)
		list, notice, err := s.Calls.ListFiles(attempt, target, listing)
		if err != nil {
			return nil, err
		}
		if lost == "" {
			lost = notice // told once, to the first call after the loss
		}
		out, err := encodeBounded(listOut(list, lost))
		if !errors.Is(err, errUnusable) || len(list.Entries) < 2 {
			return out, err
		}
		drop()
		listing.Limit = len(list.Entries) / 2
	}
}

func listOut(list *client.FileList, notice string) listFilesOut {
	out := listFilesOut{Path: list.Path, Entries: []listEntry{}, Truncated: list.Truncated, Next: list.Next, Notice: strings.TrimSpace(notice + " " + list.Notice)}
	for i := range list.Entries {
		e := &list.Entries[i]
		entry := listEntry{Path: e.Path, Type: e.Type, Modified: e.Modified.UTC().Format(time.RFC3339), Target: e.Target}
		if e.Type == client.TypeFile {
			entry.Size = &e.Size
		}
		out.Entries = append(out.Entries, entry)
	}
	return out
}
