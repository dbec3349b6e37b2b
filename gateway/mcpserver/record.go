package mcpserver

import (
	"context"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/requestid"
	"github.com/berth-dev/berth/gateway/tasks"
)

// record writes the audit line, the metrics and the span of a call. What failed for no fault
// of the caller's names its request, by which its lines in the log are found.
func (s *Server) record(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if !recorded(method) {
			return next(ctx, method, req)
		}
		call := audit.Call{Operation: method, Code: audit.CodePanic}
		operation := method
		if params, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok {
			call.InBytes = int64(len(params.Arguments))
			call.Tool, operation = toolLabel(params.Name)
		}
		ctx, end := s.trace(ctx, req, &call)
		start := time.Now()
		defer s.Metrics.Begin()()
		defer func() {
			end(&call)
			call.Duration = time.Since(start)
			audit.Log(ctx, s.Log, &call)
			s.Metrics.Call(operation, call.Code, call.Duration, call.InBytes, call.OutBytes)
			s.Metrics.Operation(method, call.Tool, errorType(call.Code), call.Duration)
		}()
		result, err := next(audit.WithCall(ctx, &call), method, req)
		if call.Code == audit.CodePanic { // the handler didn't say
			call.Code = codeOfAnswer(result, err)
		}
		if call.Code == audit.CodeFailed {
			mention(ctx, result, err)
		}
		return result, err
	}
}

// recorded tells which methods are calls that reach a session.
func recorded(method string) bool {
	switch method {
	case methodCallTool, methodReadResource, tasks.MethodGet, tasks.MethodUpdate, tasks.MethodCancel:
		return true
	default:
		return false
	}
}

// errorType is what OpenTelemetry's conventions call a code: nothing for a success.
func errorType(code string) string {
	if code == audit.CodeOK {
		return ""
	}
	return code
}

// codeOfAnswer is the code of what was answered before a handler was reached.
func codeOfAnswer(result mcp.Result, err error) string {
	r, ok := result.(*mcp.CallToolResult)
	if err != nil || ok && r.IsError {
		return audit.CodeInvalid
	}
	return audit.CodeOK
}

// mention adds the request's id to the text of a failure.
func mention(ctx context.Context, result mcp.Result, err error) {
	if wire := (*jsonrpc.Error)(nil); errors.As(err, &wire) {
		wire.Message += requestid.Mention(ctx)
	}
	if r, ok := result.(*mcp.CallToolResult); ok && r.IsError && len(r.Content) == 1 {
		if text, ok := r.Content[0].(*mcp.TextContent); ok {
			text.Text += requestid.Mention(ctx)
		}
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
