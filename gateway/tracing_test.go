package gateway_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/berth-dev/berth/gateway"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// Traces of callers, which a gateway is told of in two ways.
const (
	traceOfMeta   = "0af7651916cd43dd8448eb211c80319c"
	traceOfHeader = "4bf92f3577b34da6a3ce929d0e0e4736"
)

// traced is a gateway whose spans are recorded, and what its agent was told of them.
type traced struct {
	*live
	spans *tracetest.InMemoryExporter

	mu   sync.Mutex
	told []string
}

func newTraced(t *testing.T) *traced {
	t.Helper()
	api, fa := newAPI(t), newAgent(t, "pod-1")
	sandbox := readyOn(newSandbox("s", "alice"), fa)
	api.put(t, sandbox)
	tr := &traced{spans: tracetest.NewInMemoryExporter()}
	fa.before = func(_ http.ResponseWriter, r *http.Request) bool {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		tr.told = append(tr.told, r.Header.Get("Traceparent"))
		return false
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(tr.spans))
	tr.live = &live{newStack(t, api, func(o *gateway.Options) { o.Traces = provider }), fa, sandbox}
	return tr
}

// call calls a tool with the traces that are given.
func (tr *traced) call(era, params, meta, header string) {
	tr.t.Helper()
	body := message(era, "tools/call", params)
	if meta != "" {
		parent := fmt.Sprintf(`"traceparent":"00-%s-b7ad6b7169203331-01"`, meta)
		if strings.Contains(body, `"_meta":{`) {
			body = strings.Replace(body, `"_meta":{`, `"_meta":{`+parent+`,`, 1)
		} else {
			body = strings.Replace(body, `"params":{`, `"params":{"_meta":{`+parent+`},`, 1)
		}
	}
	resp, answer := tr.do(http.MethodPost, "/mcp", "alice", strings.NewReader(body), func(r *http.Request) {
		toolHeaders(era, "s")(r)
		r.Header.Set("Mcp-Name", nameOf(params))
		r.Header.Set("X-Request-ID", "r-1")
		if header != "" {
			r.Header.Set("Traceparent", "00-"+header+"-00f067aa0ba902b7-01")
		}
	})
	if resp.StatusCode != http.StatusOK {
		tr.t.Errorf("status %d: %s", resp.StatusCode, answer)
	}
}

// lines are the spans, each as its name, its parent's and its attributes.
func (tr *traced) lines() []string {
	spans := tr.spans.GetSpans()
	names := make(map[string]string)
	for _, s := range spans {
		names[s.SpanContext.SpanID().String()] = s.Name
	}
	var lines []string
	for _, s := range spans {
		attributes := make(map[string]string)
		for _, a := range s.Attributes {
			attributes[string(a.Key)] = a.Value.String()
		}
		line := fmt.Sprintf("%s < %s %s", s.Name, names[s.Parent.SpanID().String()], s.Status.Code)
		for _, key := range slices.Sorted(maps.Keys(attributes)) {
			line += " " + key + "=" + attributes[key]
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// A call is a span, with what it waits for beneath it, and the agent is told which
// one asks; nothing of the command, of what it wrote or of the caller's token is in
// any.
func TestSpansOfACall(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		tr := newTraced(t)
		tr.agent.session = &client.Session{}
		tr.agent.exec = func(w http.ResponseWriter, _ *http.Request, _ client.ExecRequest) {
			agentJSON(w, client.ExecResult{Stdout: "secret", ExitCode: 3, StdoutBytes: 6})
		}
		tr.call(era, `"name":"bash","arguments":{"command":"echo secret; exit 3"}`, "", "")
		want := []string{
			"ask agent < tools/call bash Unset k8s.pod.uid=pod-1",
			"resolve session < tools/call bash Unset",
			"tools/call bash <  Error berth.namespace=sandboxes berth.request.id=r-1 berth.session=s error.type=exit_nonzero" +
				" gen_ai.operation.name=execute_tool gen_ai.tool.name=bash mcp.method.name=tools/call",
		}
		if diff := cmp.Diff(want, tr.lines()); diff != "" {
			t.Errorf("spans (-want +got):\n%s", diff)
		}
		spans := tr.spans.GetSpans()
		asking := slices.IndexFunc(spans, func(s tracetest.SpanStub) bool { return s.Name == "ask agent" })
		parent := fmt.Sprintf("00-%s-%s-01", spans[asking].SpanContext.TraceID(), spans[asking].SpanContext.SpanID())
		if diff := cmp.Diff([]string{parent}, tr.told); diff != "" {
			t.Errorf("the agent was told (-want +got):\n%s", diff)
		}
	})
}

// A call belongs to the trace that its client names in _meta, else to that of the
// HTTP request, else to one of its own; what is malformed names none.
func TestParentOfACall(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ meta, header, want string }{
		"_meta":            {traceOfMeta, "", traceOfMeta},
		"header":           {"", traceOfHeader, traceOfHeader},
		"both":             {traceOfMeta, traceOfHeader, traceOfMeta},
		"malformed _meta":  {"xyz", traceOfHeader, traceOfHeader},
		"malformed header": {"", "xyz", ""},
		"none":             {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachEra(t, func(t *testing.T, era string) {
				tr := newTraced(t)
				tr.call(era, `"name":"bash","arguments":{"command":"x"}`, tc.meta, tc.header)
				for _, s := range tr.spans.GetSpans() {
					got := s.SpanContext.TraceID().String()
					if tc.want != "" && got != tc.want || tc.want == "" && (got == traceOfMeta || got == traceOfHeader) {
						t.Errorf("span %q is of trace %s, want %q", s.Name, got, tc.want)
					}
				}
			})
		})
	}
}

// Calls over HTTP are spans too, by their route: a path may hold what a span must
// not.
func TestSpansOfHTTP(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ method, path, want string }{
		"upload": {"POST", "/sessions/s/files?name=secret", "POST /sessions/{id}/files <  Unset berth.namespace=sandboxes berth.request.id=r-1 berth.session=s http.request.method=POST http.route=/sessions/{id}/files"},
		"artifact": {"GET", "/artifacts/sandboxes.s." + artifactID,
			"GET /artifacts/{token} <  Error berth.namespace=sandboxes berth.request.id=r-1 berth.session=s error.type=not_found http.request.method=GET http.route=/artifacts/{token}"},
		"deletion": {"DELETE", "/sessions/s", "DELETE /sessions/{id} <  Unset berth.namespace=sandboxes berth.request.id=r-1 berth.session=s http.request.method=DELETE http.route=/sessions/{id}"},
		"invalid":  {"DELETE", "/sessions/S", "DELETE /sessions/{id} <  Error berth.request.id=r-1 error.type=invalid http.request.method=DELETE http.route=/sessions/{id}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTraced(t)
			tr.do(tc.method, tc.path, "alice", strings.NewReader("x"), func(r *http.Request) {
				r.Header.Set("X-Request-ID", "r-1")
				if tc.method != "POST" {
					r.Body, r.ContentLength = nil, 0
				}
			})
			tr.stop() // which waits for the call's end: its answer comes before
			if err := <-tr.done; err != nil {
				t.Errorf("Serve: %v", err)
			}
			lines := tr.lines()
			if !slices.Contains(lines, tc.want) {
				t.Errorf("spans:\n%s\nwant\n%s", strings.Join(lines, "\n"), tc.want)
			}
			for _, line := range lines {
				if strings.Contains(line, "secret") || strings.Contains(line, artifactID) {
					t.Errorf("a span holds what it must not: %s", line)
				}
			}
		})
	}
}
