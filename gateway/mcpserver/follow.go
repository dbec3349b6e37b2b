package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/cancellation"
)

// follow ends a call when its caller has gone or has cancelled it.
func follow(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ctx, stop := cancellation.Follow(ctx)
		defer stop()
		return next(ctx, method, req)
	}
}
