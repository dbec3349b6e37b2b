package tracing

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Nothing is recorded unless the environment asks for it, and what it asks for in
// vain is refused at the start.
func TestWanted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		env map[string]string
		on  bool
		err string
	}{
		"nothing":            {nil, false, ""},
		"endpoint":           {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, true, ""},
		"endpoint of traces": {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, true, ""},
		"exporter":           {map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, true, ""},
		"none":               {map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, false, ""},
		"disabled":           {map[string]string{"OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, false, ""},
		"not disabled":       {map[string]string{"OTEL_SDK_DISABLED": "false", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, true, ""},
		"another exporter":   {map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, false, "OTEL_TRACES_EXPORTER=zipkin: want otlp or none"},
		"gRPC":               {map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, false, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc: want http/protobuf"},
		"traces' own protocol": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
			"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on, err := wanted(func(name string) string { return tc.env[name] })
			if on != tc.on || (err == nil) != (tc.err == "") || err != nil && !strings.HasPrefix(err.Error(), tc.err) {
				t.Errorf("%v, %v; want %v, %q", on, err, tc.on, tc.err)
			}
		})
	}
}

// Spans reach a receiver of OTLP over HTTP, named as the standard variables say.
func TestSpansAreSent(t *testing.T) {
	received := make(chan *collector.ExportTraceServiceRequest, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var export collector.ExportTraceServiceRequest
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = proto.Unmarshal(body, &export)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		}
		received <- &export
	}))
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=c")
	provider, err := NewProvider(t.Context(), "v1")
	if err != nil {
		t.Fatal(err)
	}
	_, span := provider.Tracer(scope).Start(t.Context(), "tools/call bash")
	span.End()
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	export := <-received
	if len(export.ResourceSpans) != 1 || len(export.ResourceSpans[0].ScopeSpans) != 1 {
		t.Fatalf("received %v", export)
	}
	of := make(map[string]string)
	for _, a := range export.ResourceSpans[0].Resource.Attributes {
		of[a.Key] = a.Value.GetStringValue()
	}
	for key := range of {
		if strings.HasPrefix(key, "telemetry.sdk.") {
			delete(of, key)
		}
	}
	want := map[string]string{"service.name": "berth-gateway", "service.version": "v1", "k8s.cluster.name": "c"}
	if diff := cmp.Diff(want, of); diff != "" {
		t.Errorf("resource (-want +got):\n%s", diff)
	}
	if spans := export.ResourceSpans[0].ScopeSpans[0].Spans; len(spans) != 1 || spans[0].Name != "tools/call bash" {
		t.Errorf("spans %v", spans)
	}
}

// An environment that asks for no traces gets no provider, and so costs nothing.
func TestNoProvider(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
	t.Setenv("OTEL_TRACES_EXPORTER", "")
	if p, err := NewProvider(t.Context(), "v1"); p != nil || err != nil {
		t.Errorf("%v, %v; want nothing", p, err)
	}
}
