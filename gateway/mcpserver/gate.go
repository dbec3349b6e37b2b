package mcpserver

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/audit"
)

// gate answers methods of capabilities that were not declared as unknown, where
// the SDK would answer with empty lists; and a URI that is no artifact's as not
// found, where the SDK would put it unescaped into its answer.
func gate(declared *mcp.ServerCapabilities) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if !offers(declared, method) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method %q is not supported", method)}
			}
			if params, ok := req.GetParams().(*mcp.ReadResourceParams); ok && !isFixture(params.URI) {
				if _, _, err := artifact.ParseURI(params.URI); err != nil {
					audit.FromContext(ctx).Code = audit.CodeNotFound
					return nil, notFound(req, params.URI)
				}
			}
			return next(ctx, method, req)
		}
	}
}

// offers says whether the capability that method belongs to was declared.
func offers(declared *mcp.ServerCapabilities, method string) bool {
	switch method {
	case "prompts/list", "prompts/get":
		return declared.Prompts != nil
	case "completion/complete":
		return declared.Completions != nil
	case "logging/setLevel":
		return declared.Logging != nil //nolint:staticcheck // deprecated in the newer era, and still to be refused
	case "resources/subscribe", "resources/unsubscribe":
		return declared.Resources != nil && declared.Resources.Subscribe
	default:
		return true
	}
}
