package mcpserver

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/cancellation"
)

// MCP methods that the middleware knows.
const (
	methodCallTool     = "tools/call"
	methodReadResource = "resources/read"
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
				result, err = failure("internal error: the call was given up"), nil
				return
			}
			result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
		}()
		return next(ctx, method, req)
	}
}

// follow ends a call when its caller has gone or has cancelled it.
func follow(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ctx, stop := cancellation.Follow(ctx)
		defer stop()
		return next(ctx, method, req)
	}
}

// record writes the audit line and the metrics of a call.
func (s *Server) record(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != methodCallTool && method != methodReadResource {
			return next(ctx, method, req)
		}
		call := audit.Call{Operation: method, Code: audit.CodePanic}
		operation := method
		if params, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok {
			call.InBytes = int64(len(params.Arguments))
			call.Tool, operation = toolLabel(params.Name)
		}
		start := time.Now()
		defer s.Metrics.Begin()()
		defer func() {
			call.Duration = time.Since(start)
			audit.Log(ctx, s.Log, &call)
			s.Metrics.Call(operation, call.Code, call.Duration, call.InBytes, call.OutBytes)
		}()
		result, err := next(audit.WithCall(ctx, &call), method, req)
		switch {
		case call.Code != audit.CodePanic: // the handler said
		case err != nil:
			call.Code = audit.CodeInvalid
		default:
			call.Code = audit.CodeOK
			if r, ok := result.(*mcp.CallToolResult); ok && r.IsError {
				call.Code = audit.CodeInvalid
			}
		}
		return result, err
	}
}

// toolLabel keeps names that callers make up out of metrics and logs.
func toolLabel(name string) (tool, operation string) {
	switch name {
	case bashName, processOutputName, processInputName, processSignalName, processListName,
		readFileName, writeFileName, editFileName, listFilesName, exportName, readArtifactName:
		return name, name
	default:
		return "unknown", "unknown_tool"
	}
}

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
