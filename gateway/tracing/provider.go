// Package tracing makes OpenTelemetry spans of calls, from the caller's own to the
// request at the agent. Nothing is recorded unless the environment asks for it, and
// a span never holds a command, an output, a path or a token.
//
// Names of spans and attributes are those of OpenTelemetry's semantic conventions
// for MCP, generative AI and HTTP; what is Berth's own begins with "berth.".
package tracing

import (
	"context"
	"fmt"
	"os"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// NewProvider returns the provider that the environment asks for with OpenTelemetry's
// standard variables, or nil if it asks for none: spans go by OTLP over HTTP to
// OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, of which one
// must be set unless OTEL_TRACES_EXPORTER is "otlp". OTEL_SDK_DISABLED=true turns
// them off. The other variables are the SDK's: sampler, headers, certificates,
// batches, resource attributes. Who calls Shutdown sends what is left.
func NewProvider(ctx context.Context, version string) (*sdktrace.TracerProvider, error) {
	on, err := wanted(os.Getenv)
	if err != nil || !on {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("export traces: %w", err)
	}
	named, err := resource.New(ctx,
		resource.WithAttributes(
			attribute.String("service.name", "berth-gateway"),
			attribute.String("service.version", version),
		),
		resource.WithFromEnv(), // after, so that OTEL_SERVICE_NAME wins
		resource.WithTelemetrySDK())
	if err != nil {
		return nil, fmt.Errorf("describe this program for traces (OTEL_RESOURCE_ATTRIBUTES): %w", err)
	}
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(named)), nil
}

// wanted tells whether the environment asks for traces, and refuses what it asks
// for in vain.
func wanted(getenv func(string) string) (bool, error) {
	first := func(names ...string) (name, value string) {
		for _, name := range names {
			if value := getenv(name); value != "" {
				return name, value
			}
		}
		return "", ""
	}
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	exporter := getenv("OTEL_TRACES_EXPORTER")
	_, endpoint := first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	switch {
	case exporter == "none", exporter == "" && endpoint == "":
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER=%s: want otlp or none", exporter)
	}
	name, protocol := first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
	if protocol != "" && protocol != "http/protobuf" {
		return false, fmt.Errorf("%s=%s: want http/protobuf, of which an OTLP collector listens on port 4318", name, protocol)
	}
	return true, nil
}
