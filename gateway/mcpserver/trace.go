package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"

	"github.com/berth-dev/berth/gateway/audit"
)

// trace begins the span of a call: its parent is the one that the client names in
// _meta, which is the call's own, else that of the HTTP request.
func (s *Server) trace(ctx context.Context, req mcp.Request, call *audit.Call) (_ context.Context, end func(*audit.Call)) {
	if s.Tracer == nil {
		return ctx, func(*audit.Call) {}
	}
	name := call.Operation
	attributes := []attribute.KeyValue{attribute.String("mcp.method.name", call.Operation)}
	if call.Tool != "" {
		name += " " + call.Tool
		attributes = append(attributes,
			attribute.String("gen_ai.operation.name", "execute_tool"),
			attribute.String("gen_ai.tool.name", call.Tool))
	}
	parents := []propagation.TextMapCarrier{meta{req.GetParams().GetMeta()}}
	if extra := req.GetExtra(); extra != nil {
		parents = append(parents, propagation.HeaderCarrier(extra.Header))
	}
	return s.Tracer.Begin(ctx, name, parents, attributes...)
}

// meta reads W3C Trace Context from a request's _meta, where its keys are reserved
// for it (MCP 2026-07-28, basic, "_meta").
type meta struct{ values map[string]any }

// Get implements propagation.TextMapCarrier.
func (m meta) Get(key string) string {
	value, _ := m.values[key].(string)
	return value
}

// Set implements propagation.TextMapCarrier: nothing is written to a request.
func (m meta) Set(string, string) {}

// Keys implements propagation.TextMapCarrier.
func (m meta) Keys() []string { return []string{"traceparent", "tracestate"} }
