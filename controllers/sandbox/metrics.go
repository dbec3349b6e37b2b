package sandbox

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	startSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "berth_sandbox_start_seconds",
		Help:    "Time from a Sandbox's creation (to the second) to its first Ready, by how it started.",
		Buckets: []float64{0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256},
	}, []string{"start"})

	podsCreated = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "berth_sandbox_pods_created_total",
		Help: "Pods that were recorded in a Sandbox's status, first ones and replacements.",
	})

	podsReplaced = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "berth_sandbox_pods_replaced_total",
		Help: "Pods that ended and were given up for a successor, by how they ended.",
	}, []string{"reason"})

	sandboxesExpired = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "berth_sandboxes_expired_total",
		Help: "Sandboxes that were deleted at a deadline, by the field that set it.",
	}, []string{"deadline"})
)

func init() {
	metrics.Registry.MustRegister(startSeconds, podsCreated, podsReplaced, sandboxesExpired)
}

func countExpired(seen *Observation) {
	if due := dueExpiry(seen); due != nil {
		sandboxesExpired.WithLabelValues(due.field).Inc()
	}
}
