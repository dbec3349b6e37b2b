package tracing

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
)

// A caller's tracestate is not all that an agent takes of headers: entries go on whole,
// up to the limit.
func TestLongTracestateIsCut(t *testing.T) {
	t.Parallel()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	entry := func(name string, length int) string { return name + "=" + strings.Repeat("v", length-len(name)-1) }
	longest := entry(strings.Repeat("k", 256), 513)
	for name, tc := range map[string]struct{ state, want string }{
		"none":          {"", ""},
		"one below":     {entry("a", 255) + "," + entry("b", 255), entry("a", 255) + "," + entry("b", 255)},
		"at the limit":  {entry("a", 255) + "," + entry("b", 256), entry("a", 255) + "," + entry("b", 256)},
		"one above":     {entry("a", 256) + "," + entry("b", 256), entry("a", 256)},
		"comma at it":   {entry("a", 256) + "," + entry("b", 255) + "," + entry("c", 10), entry("a", 256) + "," + entry("b", 255)},
		"longest entry": {longest, ""},
	} {
		ctx := traceContext.Extract(context.Background(), propagation.MapCarrier{"traceparent": parent, "tracestate": tc.state})
		header := http.Header{}
		Propagate(ctx, header)
		if got := header.Get("Tracestate"); got != tc.want || header.Get("Traceparent") != parent {
			t.Errorf("%s: tracestate %q (%d), want %q (%d); traceparent %q", name, got, len(got), tc.want, len(tc.want), header.Get("Traceparent"))
		}
		if _, there := header["Tracestate"]; there && tc.want == "" {
			t.Errorf("%s: an empty tracestate goes on", name)
		}
	}
}
