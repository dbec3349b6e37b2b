package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/authz"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// invalidArguments begins the text of a call that was refused before it began.
const invalidArguments = "invalid arguments: "

// addTool registers a tool whose arguments are validated against its schema
// before handle sees them. The SDK's own generic helper does that too, and also
// decodes, validates and encodes each result again, which for megabytes of
// output costs more than the command.
func addTool[In any](server *mcp.Server, tool *mcp.Tool, handle func(context.Context, *mcp.CallToolRequest, In) (*mcp.CallToolResult, error)) {
	schema := tool.InputSchema.(*jsonschema.Schema)
	resolved, err := schema.Resolve(nil)
	if err != nil {
		panic(fmt.Sprintf("input schema of tool %s: %v", tool.Name, err)) // a constant of this package is wrong
	}
	// The SDK encodes it for each call, to look for headers in it.
	encoded, err := encode(schema)
	if err != nil {
		panic(fmt.Sprintf("input schema of tool %s: %v", tool.Name, err))
	}
	tool.InputSchema = encoded
	server.AddTool(tool, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in In
		if err := arguments(resolved, req.Params.Arguments, &in); err != nil {
			return failure(invalidArguments + shortened(err.Error())), nil
		}
		result, err := handle(ctx, req, in)
		if err != nil {
			return failure(err.Error()), nil
		}
		return result, nil
	})
}

// shortened keeps megabytes of a wrong argument, which the validator repeats, from
// coming back.
func shortened(text string) string {
	const most = 1 << 10
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " [...]"
}

// arguments validates raw and decodes it into in.
func arguments(schema *jsonschema.Resolved, raw json.RawMessage, in any) error {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	var value map[string]any
	if err := json.Unmarshal(raw, &value); err != nil {
		return errors.New("not a JSON object")
	}
	if err := schema.Validate(value); err != nil {
		return err
	}
	return json.Unmarshal(raw, in)
}

// closed is a schema that nothing satisfies: no argument but those named.
func closed() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

// failure is a call that failed: text only.
func failure(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: true}
}

// encode leaves < > & as they are: outputs are full of them.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// request says which session a tool call is for, checking that its caller may
// use it. No session is touched before.
func (s *Server) request(ctx context.Context, header http.Header) (session.Request, error) {
	call := audit.FromContext(ctx)
	call.Code = audit.CodeInvalid
	id, err := session.FromHeader(header)
	if err != nil {
		return session.Request{}, err
	}
	call.Session = id
	caller, ok := authn.FromContext(ctx)
	if !ok {
		return session.Request{}, authn.ErrUnauthenticated
	}
	call.Namespace = s.Namespaces.For(caller)
	req := session.Request{
		Key:       session.Key{Namespace: call.Namespace, Name: id},
		Caller:    caller,
		MayCreate: true,
	}
	return req, nil
}

// authorize asks whether the caller may use the session.
func (s *Server) authorize(ctx context.Context, req session.Request, verb authz.Verb) error {
	call := audit.FromContext(ctx)
	allowed, err := s.Authorizer.Allowed(ctx, req.Caller, verb, req.Key.Namespace, req.Key.Name)
	if err != nil {
		call.Code = audit.CodeFailed
		s.Log.ErrorContext(ctx, "Caller could not be authorized", "namespace", req.Key.Namespace, "session", req.Key.Name, "error", err)
		return errors.New("callers can't be authorized at the moment; try again")
	}
	if !allowed {
		call.Code = audit.CodeForbidden
		return session.ErrForbidden
	}
	return nil
}

// codeOf is the audit code of a failed call.
func codeOf(ctx context.Context, err error) string {
	switch {
	case ctx.Err() != nil, errors.Is(err, client.ErrCancelled):
		return audit.CodeCancelled
	case errors.Is(err, session.ErrNotAvailable), errors.Is(err, session.ErrForbidden):
		return audit.CodeForbidden
	case errors.Is(err, session.ErrNotFound), errors.Is(err, artifact.ErrNotFound):
		return audit.CodeNotFound
	case errors.Is(err, artifact.ErrRange):
		return audit.CodeInvalid
	default:
		return audit.CodeFailed
	}
}

func ptr[T any](v T) *T { return &v }
