package artifactstore

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// A gateway that begins says of each store whether it can be used, why not, and what
// to do; it shows no credentials.
func TestLook(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"reached":      {nil, `level=INFO msg="Reached artifact store" store=archive`},
		"no bucket":    {func(c *Config) { c.Bucket = "no-such-bucket" }, "has no bucket: whoever runs the gateway must make it"},
		"nobody there": {func(c *Config) { c.Endpoint = "https://127.0.0.1:1" }, `doing=look`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c.change)
			b.limits.pause = 1
			b.look(t.Context())
			log := b.logged.String()
			if !strings.Contains(log, c.want) || strings.Count(log, "\n") != 1 || strings.Contains(log, "WARN") == (name == "reached") {
				t.Errorf("log %q, want one line with %q", log, c.want)
			}
			b.silent()
		})
	}
}

func TestLookOfOneThatIsRefused(t *testing.T) {
	t.Parallel()
	b := newFaulty(t, func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusForbidden, "AccessDenied") })
	b.look(t.Context())
	if log := b.logged.String(); !strings.Contains(log, "must see to its credentials and rights") || strings.Count(log, "\n") != 1 {
		t.Errorf("log %q", log)
	}
	b.silent()
}

// One that has keys already is reached as one without.
func TestLookAtAStoreInUse(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.keep(fileOf([]byte("content")))
	b.keep(fileOf([]byte("more")))
	b.logged.Reset()
	b.look(t.Context())
	if log := b.logged.String(); !strings.Contains(log, "Reached artifact store") {
		t.Errorf("log %q", log)
	}
}

// The check ends with the gateway, and says nothing of that.
func TestLookEndsWithTheGateway(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	b := newFaulty(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	b.look(ctx)
	if log := b.logged.String(); log != "" {
		t.Errorf("log %q", log)
	}
}
