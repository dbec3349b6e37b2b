package mcpserver

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/tasks"
)

// errBusy is a call too many.
var errBusy = errors.New("the gateway serves as many calls as it can: nothing was run; try again")

// rate bounds how many calls are under way, for a command may run for minutes and
// each holds memory meanwhile.
func (s *Server) rate(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if !rated(method) {
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
		case method != methodCallTool:
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: errBusy.Error()}
		case call.Tool == bashName:
			return failure(execFailed + errBusy.Error()), nil
		default:
			return failure(errBusy.Error()), nil
		}
	}
}

// rated tells which methods take a place. What ends a command finds it without one.
func rated(method string) bool {
	switch method {
	case methodCallTool, methodReadResource, tasks.MethodGet, tasks.MethodUpdate:
		return true
	default:
		return false
	}
}
