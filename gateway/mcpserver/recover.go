package mcpserver

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/requestid"
)

// recoverPanic makes a panic one failed call. The SDK would let it end the
// process, and every other call with it.
func (s *Server) recoverPanic(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			s.Log.ErrorContext(ctx, "Handler panicked", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			if method == methodCallTool {
				result, err = failure("internal error: the call was given up"+requestid.Mention(ctx)), nil
				return
			}
			result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error" + requestid.Mention(ctx)}
		}()
		return next(ctx, method, req)
	}
}
