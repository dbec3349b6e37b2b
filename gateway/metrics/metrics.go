// Package metrics declares what the gateway measures. Label sets are closed: no
// session, pod, user or namespace is ever a label.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Metrics of one gateway.
type Metrics struct {
	Registry *prometheus.Registry

	calls      *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	operations *prometheus.HistogramVec
	inFlight   prometheus.Gauge
	bytes      *prometheus.CounterVec
	resolves   *prometheus.HistogramVec
	reviews    *prometheus.CounterVec
	troubles   *prometheus.CounterVec
	refusals   *prometheus.CounterVec
	stores     *prometheus.CounterVec
	swept      prometheus.Counter
}

// New registers the gateway's metrics, Go's and the process's. sandboxes tells
// how many Sandboxes the gateway knows.
func New(sandboxes func() int) *Metrics {
	m := &Metrics{Registry: prometheus.NewRegistry()}
	m.declareCalls()
	m.declareSessions(sandboxes)
	m.declareStores()
	m.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *Metrics) declareCalls() {
	m.calls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "berth_gateway_calls_total",
		Help: "Finished calls by operation (a tool's name, unknown_tool, resources/read, tasks/get, tasks/update, tasks/cancel, get_artifact, delete_session, upload_file) and result code.",
	}, []string{"operation", "code"})
	m.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "berth_gateway_call_duration_seconds",
		Help:    "Duration of calls by operation.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .1, .25, 1, 2.5, 10, 60, 300},
	}, []string{"operation"})
	m.operations = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "mcp_server_operation_duration_seconds",
		Help:    "Duration of MCP calls as OpenTelemetry's semantic conventions have it: by method, tool, and the code of what didn't succeed.",
		Buckets: []float64{.01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 120, 300},
	}, []string{"mcp_method_name", "gen_ai_tool_name", "error_type"})
	m.inFlight = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "berth_gateway_calls_in_flight",
		Help: "Calls under way.",
	})
	m.bytes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "berth_gateway_payload_bytes_total",
		Help: "Payload of calls by direction: in (arguments, uploads) or out (results, artifacts).",
	}, []string{"direction"})
	m.refusals = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "berth_gateway_http_refusals_total",
		Help: "HTTP requests refused before they reached a tool, by reason.",
	}, []string{"reason"})
	m.Registry.MustRegister(m.calls, m.seconds, m.operations, m.inFlight, m.bytes, m.refusals)
}

func (m *Metrics) declareSessions(sandboxes func() int) {
	m.resolves = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "berth_gateway_resolve_duration_seconds",
		Help:    "How long calls took to find their session, by state (warm: it was ready; cold: it was waited for) and result: ready, failed or cancelled.",
		Buckets: []float64{.00001, .0001, .001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
	}, []string{"state", "result"})
	m.reviews = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "berth_gateway_reviews_total",
		Help: "Reviews asked of the API server by kind (token, access) and outcome (allowed, denied, error).",
	}, []string{"kind", "outcome"})
	m.troubles = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "berth_gateway_agent_troubles_total",
		Help: "Calls to agents that went wrong, by kind: not_sent, lost, unauthorized, gone, bad_answer or timeout.",
	}, []string{"kind"})
	known := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "berth_gateway_sandboxes",
		Help: "Sandboxes that the gateway knows from its watch.",
	}, func() float64 { return float64(sandboxes()) })
	m.Registry.MustRegister(m.resolves, m.reviews, m.troubles, known)
}

func (m *Metrics) declareStores() {
	m.stores = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "berth_gateway_artifact_store_operations_total",
		Help: "What artifact stores were asked for by operation (put, get, sweep) and outcome: ok, or error for a store that failed.",
	}, []string{"operation", "outcome"})
	m.swept = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "berth_gateway_artifact_store_swept_objects_total",
		Help: "Expired objects that this replica deleted from artifact stores.",
	})
	m.Registry.MustRegister(m.stores, m.swept)
}

// Call counts a finished call.
func (m *Metrics) Call(operation, code string, took time.Duration, in, out int64) {
	m.calls.WithLabelValues(operation, code).Inc()
	m.seconds.WithLabelValues(operation).Observe(took.Seconds())
	m.bytes.WithLabelValues("in").Add(float64(in))
	m.bytes.WithLabelValues("out").Add(float64(out))
}

// Operation observes a finished call of MCP's. code is "" for one that succeeded,
// tool for one of none.
func (m *Metrics) Operation(method, tool, code string, took time.Duration) {
	m.operations.WithLabelValues(method, tool, code).Observe(took.Seconds())
}

// Begin counts a call under way until the function that it returns is called.
func (m *Metrics) Begin() (end func()) {
	m.inFlight.Inc()
	return m.inFlight.Dec
}

// Resolve observes how long it took to find a session.
func (m *Metrics) Resolve(state, result string, took time.Duration) {
	m.resolves.WithLabelValues(state, result).Observe(took.Seconds())
}

// Review returns an observer of reviews of one kind: token or access.
func (m *Metrics) Review(kind string) func(outcome string) {
	return func(outcome string) { m.reviews.WithLabelValues(kind, outcome).Inc() }
}

// Trouble counts trouble with an agent.
func (m *Metrics) Trouble(kind string) { m.troubles.WithLabelValues(kind).Inc() }

// Refusal counts an HTTP request that was refused.
func (m *Metrics) Refusal(reason string) { m.refusals.WithLabelValues(reason).Inc() }

// StoreOperation counts what an artifact store did, or failed to do.
func (m *Metrics) StoreOperation(operation string, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "error"
	}
	m.stores.WithLabelValues(operation, outcome).Inc()
}

// Swept counts objects deleted from an artifact store.
func (m *Metrics) Swept(objects int) { m.swept.Add(float64(objects)) }
