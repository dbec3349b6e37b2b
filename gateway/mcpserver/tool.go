package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
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

func ptr[T any](v T) *T { return &v }
