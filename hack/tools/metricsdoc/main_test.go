package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const source = `package p

var a = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "berth_calls_total",
	Help: "Calls, " + "by code.",
}, []string{"code", "operation"})

var b = prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "berth_a", Help: "A."}, func() float64 { return 0 })
`

func TestMetricsAreFoundWithKindHelpAndLabels(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "gateway")
	writeSource(t, dir, source)
	var page strings.Builder
	if err := run([]string{dir}, &page); err != nil {
		t.Fatal(err)
	}
	want := "## gateway\n\n| metric | kind | labels | |\n|---|---|---|---|\n" +
		"| `berth_a` | gauge |  | A. |\n" +
		"| `berth_calls_total` | counter | `code`, `operation` | Calls, by code. |\n"
	if !strings.HasSuffix(page.String(), want) {
		t.Errorf("page ends with\n%s\nwant\n%s", page.String(), want)
	}
}

func TestAMetricWithoutLiteralsIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeSource(t, dir, "package p\n\nvar a = prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: \"A.\"})\n")
	if err := run([]string{dir}, &strings.Builder{}); err == nil {
		t.Error("a metric whose name isn't a literal was passed over")
	}
}

func writeSource(t *testing.T, dir, content string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "metrics.go"), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
