package main

import (
	"os"
	"path/filepath"
	"testing"

	pprof "github.com/google/pprof/profile"
)

// sampleOf makes a sample of n nanoseconds whose innermost function comes first.
func sampleOf(n int64, label string, functions ...string) *pprof.Sample {
	s := &pprof.Sample{Value: []int64{1, n}}
	if label != "" {
		s.Label = map[string][]string{clientLabel: {label}}
	}
	for _, name := range functions {
		s.Location = append(s.Location, &pprof.Location{Line: []pprof.Line{{Function: &pprof.Function{Name: name}}}})
	}
	return s
}

func TestASampleBelongsToTheInnermostKindOfWork(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]*pprof.Sample{
		"signatures":           sampleOf(1, "", "crypto/internal/fips140/edwards25519.(*Point).Add", "github.com/golang-jwt/jwt/v5.(*Token).SignedString", "github.com/berth-dev/berth/sandbox-agent/client.(*Signer).sign"),
		"garbage collection":   sampleOf(1, "", "runtime.scanobject", "runtime.gcBgMarkWorker"),
		"MCP SDK and its JSON": sampleOf(1, "", "runtime.mallocgc", "github.com/segmentio/encoding/json.(*Decoder).Decode", "net/http.(*conn).serve"),
		"HTTP":                 sampleOf(1, "", "syscall.write", "net/http.(*conn).serve"),
		"running commands":     sampleOf(1, "", "syscall.write", "github.com/berth-dev/berth/sandbox-agent/shell.(*bash).run", "net/http.(*conn).serve"),
		restOfRuntime:          sampleOf(1, "", "runtime.futex", "runtime.mcall"),
	} {
		if got := groupOf(s); got != want {
			t.Errorf("the sample of %s is taken for %q", want, got)
		}
	}
}

func TestSharesLeaveOutTheClient(t *testing.T) {
	t.Parallel()
	p := splitProfile("gateway", &pprof.Profile{Sample: []*pprof.Sample{
		sampleOf(30, "", "net/http.(*conn).serve"),
		sampleOf(10, "", "runtime.futex"),
		sampleOf(60, "2026-07-28", "net/http.(*persistConn).readLoop"),
	}})
	for _, s := range p.shares {
		want := map[string]float64{"HTTP": 75, restOfRuntime: 25}[s.name]
		if s.percent != want {
			t.Errorf("%s has %v %%, want %v %%", s.name, s.percent, want)
		}
	}
}

func TestAnEmptyProfileIsAnError(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "empty.cpu")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readProfile("agent", path); err == nil {
		t.Error("an empty profile was read without an error")
	}
}
