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
func gate(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch method {
		case "prompts/list", "prompts/get", "completion/complete", "logging/setLevel",
			"resources/subscribe", "resources/unsubscribe":
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method %q is not supported", method)}
		case methodReadResource:
			if params, ok := req.GetParams().(*mcp.ReadResourceParams); ok {
				if _, _, err := artifact.ParseURI(params.URI); err != nil {
					audit.FromContext(ctx).Code = audit.CodeNotFound
					return nil, notFound(req, params.URI)
				}
			}
		}
		return next(ctx, method, req)
	}
}
