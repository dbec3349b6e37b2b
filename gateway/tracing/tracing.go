package tracing

import (
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/requestid"
)

// scope is what spans are made by.
const scope = "github.com/berth-dev/berth/gateway"

// Tracer begins a call's spans. A nil one makes none.
type Tracer struct{ tracer trace.Tracer }

// New returns a tracer of provider's, or nil for nil.
func New(provider trace.TracerProvider) *Tracer {
	if provider == nil {
		return nil
	}
	return &Tracer{provider.Tracer(scope)}
}

// traceContext reads and writes the headers of W3C Trace Context.
var traceContext propagation.TraceContext

// Begin begins the span of a call that this gateway serves. Its parent is the first
// of parents that names one: traceparent, and tracestate beside it. The caller calls
// end with what became of the call.
func (t *Tracer) Begin(ctx context.Context, name string, parents []propagation.TextMapCarrier, attributes ...attribute.KeyValue) (_ context.Context, end func(*audit.Call)) {
	if t == nil {
		return ctx, func(*audit.Call) {}
	}
	for _, parent := range parents {
		if found := traceContext.Extract(ctx, parent); trace.SpanContextFromContext(found).IsValid() {
			ctx = found
			break
		}
	}
	if id := requestid.From(ctx); id != "" {
		attributes = append(attributes, attribute.String("berth.request.id", id))
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attributes...))
	return ctx, func(call *audit.Call) {
		defer span.End()
		if call.Session != "" {
			span.SetAttributes(attribute.String("berth.namespace", call.Namespace), attribute.String("berth.session", call.Session))
		}
		if call.Code != "" && call.Code != audit.CodeOK {
			span.SetAttributes(attribute.String("error.type", call.Code))
			span.SetStatus(codes.Error, "")
		}
	}
}

// Child begins a span beneath that of ctx, if that is recorded. The caller calls
// end with what became of it.
func Child(ctx context.Context, name string, kind trace.SpanKind, attributes ...attribute.KeyValue) (_ context.Context, end func(error)) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, func(error) {}
	}
	ctx, span := parent.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, "") // its text may hold what a span must not
		}
		span.End()
	}
}

// maxState is how much of a tracestate goes on, in bytes: what W3C Trace Context
// §3.3.1.5 wants propagated at least. A caller's may be 16 KiB, which is all that an
// agent takes of headers.
const maxState = 512

// Propagate adds to the header of a request which span it belongs to. Of a long
// tracestate, the entries that come first go on, whole.
func Propagate(ctx context.Context, header http.Header) {
	traceContext.Inject(ctx, propagation.HeaderCarrier(header))
	state := header.Get("Tracestate")
	if len(state) <= maxState {
		return
	}
	header.Del("Tracestate")
	if end := strings.LastIndexByte(state[:maxState+1], ','); end > 0 {
		header.Set("Tracestate", state[:end])
	}
}
