package mcpserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// bashOut is the structured result, and its JSON the text.
type bashOut struct {
	Stdout       string `json:"stdout"`
	Stderr       string `json:"stderr"`
	ExitCode     int    `json:"exit_code"`
	DurationMS   int64  `json:"duration_ms"`
	TimedOut     bool   `json:"timed_out,omitempty"`
	Truncated    bool   `json:"truncated,omitempty"`
	OmittedBytes int64  `json:"omitted_bytes,omitempty"`
	LogURI       string `json:"log_uri,omitempty"`
	StderrLogURI string `json:"stderr_log_uri,omitempty"`
	ProcessID    string `json:"process_id,omitempty"`
	Notice       string `json:"notice,omitempty"`
}

func bashOutSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type: "object",
		Properties: map[string]*jsonschema.Schema{
			"stdout":         {Type: "string"},
			"stderr":         {Type: "string"},
			"exit_code":      {Type: "integer", Description: "The shell's status; 128+n for signal n, 137 for a command that was killed at its timeout. 0 with background: the process was started."},
			"duration_ms":    {Type: "integer"},
			"timed_out":      {Type: "boolean"},
			"truncated":      {Type: "boolean"},
			"omitted_bytes":  {Type: "integer", Description: "How many bytes of output are left out."},
			"log_uri":        {Type: "string", Description: "The resource that holds the whole of a stdout of which bytes are left out, for an hour."},
			"stderr_log_uri": {Type: "string", Description: "The same for stderr."},
			"process_id":     {Type: "string", Description: "Of the process that was started in the background, for process_output and the like."},
			"notice":         noticeSchema(),
		},
		PropertyOrder:        []string{"stdout", "stderr", "exit_code", "duration_ms", "timed_out", "truncated", "omitted_bytes", "log_uri", "stderr_log_uri", "process_id", "notice"},
		Required:             []string{"stdout", "stderr", "exit_code", "duration_ms"},
		AdditionalProperties: closed(),
	}
}

// errUnusable is an answer of an agent that can't be passed on.
var errUnusable = errors.New("the sandbox's agent gave an answer that can't be used")

// bashResult is what a command's result is to the caller: structured, the same
// as JSON text, and a link to each log.
func bashResult(key session.Key, r *client.ExecResult) (*mcp.CallToolResult, error) {
	out := bashOut{
		Stdout: r.Stdout, Stderr: r.Stderr,
		ExitCode: r.ExitCode, DurationMS: r.DurationMS,
		TimedOut: r.TimedOut, Truncated: r.Truncated, OmittedBytes: r.OmittedBytes,
		Notice: r.Notice,
	}
	var links []mcp.Content
	if r.Log != nil {
		for _, stream := range []struct {
			name string
			file *client.LogFile
			uri  *string
		}{{"stdout", r.Log.Stdout, &out.LogURI}, {"stderr", r.Log.Stderr, &out.StderrLogURI}} {
			if stream.file == nil {
				continue
			}
			if !artifact.ValidID(stream.file.ID) || stream.file.Size < 0 || len(stream.file.Path) > maxLogPath {
				return nil, errUnusable
			}
			*stream.uri = artifact.Handle{Key: key, ID: stream.file.ID}.URI()
			links = append(links, logLink(*stream.uri, stream.name, stream.file))
		}
	}
	encoded, err := encodeBounded(out)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{
		Content:           append([]mcp.Content{&mcp.TextContent{Text: string(encoded)}}, links...),
		StructuredContent: encoded,
		IsError:           r.ExitCode != 0,
	}, nil
}

// maxLogPath bounds the name of a log, in bytes.
const maxLogPath = 255

func logLink(uri, stream string, file *client.LogFile) *mcp.ResourceLink {
	text := fmt.Sprintf("The whole of %s", stream)
	if file.Truncated {
		text = fmt.Sprintf("The beginning of %s: there was no more room", stream)
	}
	return &mcp.ResourceLink{
		URI: uri, Name: stream + ".log", Description: text + fmt.Sprintf(". Commands find it at %q.", path.Join(workspace, file.Path)),
		MIMEType: "text/plain", Size: ptr(file.Size),
	}
}

// linkRoom is more than what a result has besides text and structure: two links
// to logs and what is around it all.
const linkRoom = 8 << 10

// encodeBounded encodes a result that fits the wire. An agent sees to it that
// its results do: this is not one's word.
func encodeBounded(v any) (json.RawMessage, error) {
	out, err := encode(v)
	if err == nil && wireSize(out) > client.MaxResult-linkRoom {
		return nil, errUnusable
	}
	return out, err
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
