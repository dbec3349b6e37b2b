package process

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

func TestProbes(t *testing.T) {
	t.Parallel()
	var healthy atomic.Bool
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !healthy.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	plain := httptest.NewServer(handler)
	defer plain.Close()
	secure := httptest.NewTLSServer(handler)
	defer secure.Close()
	socket := filepath.Join(t.TempDir(), "socket")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()

	prober := NewProber((&net.Dialer{}).DialContext)
	for probe, want := range map[Probe]string{
		Probe(plain.URL):                   "503",
		Probe(secure.URL):                  "503",
		Probe("unix://" + socket + "none"): "no such file",
	} {
		if err := prober.Ask(t.Context(), probe); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", probe, err, want)
		}
	}
	healthy.Store(true)
	for _, probe := range []Probe{Probe(plain.URL), Probe(secure.URL), Probe("unix://" + socket)} {
		if err := prober.Wait(t.Context(), probe); err != nil {
			t.Errorf("%s: %v", probe, err)
		}
	}
}

func TestPollTellsTheLastReason(t *testing.T) {
	t.Parallel()
	late, reason := errors.New("too late"), errors.New("not yet")
	ctx, cancel := context.WithCancelCause(t.Context())
	err := Poll(ctx, "it", func() error {
		cancel(late)
		return reason
	})
	if !errors.Is(err, late) || !errors.Is(err, reason) {
		t.Errorf("got %v, want both %q and %q", err, late, reason)
	}
}
