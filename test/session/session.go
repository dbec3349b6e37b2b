// Package session uses a Berth session as an AI platform does: with the official
// MCP client, through the gateway.
package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Header names the session that a request is for.
const Header = "X-Session-ID"

// Versions of the protocol, one for each of its eras.
const (
	Legacy = "2025-11-25"
	Modern = "2026-07-28"
)

// Target says which gateway, caller and session.
type Target struct {
	// Address of the gateway, host:port.
	Address string
	// Token is the caller's bearer token; without one no Authorization is sent.
	Token string
	// ID is the session; without one no X-Session-ID is sent.
	ID string
	// Protocol is the version to ask for; the newest when empty.
	Protocol string
}

// Session is an MCP client of one session.
type Session struct {
	*mcp.ClientSession
	// told are the func(string) that take progress, by the token of their call.
	told sync.Map
}

// Connect connects to the gateway. It makes no sandbox: the first call does.
func Connect(ctx context.Context, target Target) (*Session, error) {
	transport := &mcp.StreamableClientTransport{
		Endpoint:             "http://" + target.Address + "/mcp",
		HTTPClient:           &http.Client{Transport: &headers{target: target, base: newTransport()}},
		MaxRetries:           -1,
		DisableStandaloneSSE: true,
	}
	s := &Session{}
	client := mcp.NewClient(&mcp.Implementation{Name: "berth-test", Version: "v1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) { s.tell(request.Params) },
	})
	connected, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: target.Protocol})
	if err != nil {
		return nil, fmt.Errorf("connect to the gateway at %s: %w", transport.Endpoint, err)
	}
	s.ClientSession = connected
	return s, nil
}

// newTransport gives a pool of connections of its own, so that closing one
// session's says nothing about another's.
func newTransport() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	return transport
}

// headers adds caller and session to every request.
type headers struct {
	target Target
	base   http.RoundTripper
}

func (h *headers) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	if h.target.Token != "" {
		request.Header.Set("Authorization", "Bearer "+h.target.Token)
	}
	if h.target.ID != "" {
		request.Header.Set(Header, h.target.ID)
	}
	return h.base.RoundTrip(request)
}

// Result is what the tool bash gives.
type Result struct {
	Stdout       string `json:"stdout"`
	Stderr       string `json:"stderr"`
	ExitCode     int    `json:"exit_code"`
	TimedOut     bool   `json:"timed_out"`
	Truncated    bool   `json:"truncated"`
	OmittedBytes int64  `json:"omitted_bytes"`
	// LogURI and StderrLogURI are where the whole of a stream is that Stdout or
	// Stderr leaves bytes out of.
	LogURI       string `json:"log_uri"`
	StderrLogURI string `json:"stderr_log_uri"`
	// ProcessID is that of a background process.
	ProcessID string `json:"process_id"`
	Notice    string `json:"notice"`
}

// ErrTool is a tool's failure that has no structured result: the call was not
// valid, or the sandbox could not run it. Its text follows.
var ErrTool = errors.New("the tool failed")

// Bash runs a command. A command that fails is a result, not an error.
func (s *Session) Bash(ctx context.Context, command string) (Result, error) {
	var result Result
	err := s.Call(ctx, "bash", map[string]any{"command": command}, &result)
	return result, err
}

// BashWithin runs a command that may run for so long.
func (s *Session) BashWithin(ctx context.Context, command string, timeout time.Duration) (Result, error) {
	var result Result
	err := s.Call(ctx, "bash", map[string]any{"command": command, "timeout": int(timeout.Seconds())}, &result)
	return result, err
}

// Artifact is what the tool export_artifact gives.
type Artifact struct {
	Name     string `json:"name"`
	MIMEType string `json:"mimeType"`
	Size     int64  `json:"size"`
	URI      string `json:"uri"`
	SHA256   string `json:"sha256"`
}

// Export exports a file of the workspace.
func (s *Session) Export(ctx context.Context, path string) (Artifact, error) {
	var artifact Artifact
	err := s.Call(ctx, "export_artifact", map[string]any{"path": path}, &artifact)
	return artifact, err
}

// Call calls a tool and decodes its structured result into result.
func (s *Session) Call(ctx context.Context, tool string, arguments, result any) error {
	return s.call(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments}, result)
}

func (s *Session) call(ctx context.Context, params *mcp.CallToolParams, result any) error {
	tool := params.Name
	reply, err := s.CallTool(ctx, params)
	if err != nil {
		return fmt.Errorf("call tool %s: %w", tool, err)
	}
	if reply.StructuredContent == nil {
		return fmt.Errorf("%w: %s: %s", ErrTool, tool, text(reply.Content))
	}
	encoded, err := json.Marshal(reply.StructuredContent)
	if err != nil {
		return err
	}
	return json.Unmarshal(encoded, result)
}

// Read reads a resource: the bytes of an exported artifact.
func (s *Session) Read(ctx context.Context, uri string) ([]byte, error) {
	reply, err := s.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return nil, fmt.Errorf("read resource: %w", err)
	}
	if len(reply.Contents) != 1 {
		return nil, fmt.Errorf("read resource: got %d contents, want 1", len(reply.Contents))
	}
	if content := reply.Contents[0]; content.Blob == nil {
		return []byte(content.Text), nil
	}
	return reply.Contents[0].Blob, nil
}

func text(contents []mcp.Content) string {
	var texts []string
	for _, content := range contents {
		if t, ok := content.(*mcp.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n")
}
