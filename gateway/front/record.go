package front

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"

	"github.com/berth-dev/berth/gateway/audit"
)

// record begins the audit line, the metrics and the span of a call that isn't
// MCP's. The caller fills in call, goes on with the request that it gets, and calls
// end with it.
func (f *Front) record(r *http.Request, operation string) (_ *http.Request, call *audit.Call, end func()) {
	call = &audit.Call{Operation: operation, Code: audit.CodePanic}
	start := time.Now()
	ctx, endSpan := f.trace(r)
	leave := f.Metrics.Begin()
	return r.WithContext(ctx), call, func() {
		leave()
		endSpan(call)
		call.Duration = time.Since(start)
		audit.Log(ctx, f.Log, call)
		f.Metrics.Call(call.Operation, call.Code, call.Duration, call.InBytes, call.OutBytes)
	}
}

func (f *Front) trace(r *http.Request) (ctx context.Context, end func(*audit.Call)) {
	path := route(r.URL.Path)
	return f.Tracer.Begin(r.Context(), r.Method+" "+path, []propagation.TextMapCarrier{propagation.HeaderCarrier(r.Header)},
		attribute.String("http.request.method", r.Method), attribute.String("http.route", path))
}
