package mcpserver

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/audit"
)

// errBusy is a call too many.
var errBusy = errors.New("the gateway serves as many calls as it can: nothing was run; try again")

// rate bounds how many calls are under way, for a command may run for minutes and
// each holds memory meanwhile.
func (s *Server) rate(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != methodCallTool && method != methodReadResource {
			return next(ctx, method, req)
		}
		leave, ok := s.Places.Enter(ctx)
		if ok {
			defer leave()
			return next(ctx, method, req)
		}
		s.Metrics.Refusal("busy")
		call := audit.FromContext(ctx)
		call.Code = audit.CodeFailed
		switch {
		case method == methodReadResource:
			return nil, unavailable(errBusy)
		case call.Tool == bashName:
			return failure(execFailed + errBusy.Error()), nil
		default:
			return failure(errBusy.Error()), nil
		}
	}
}
