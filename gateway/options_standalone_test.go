package gateway_test

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/gateway"
)

// parse reads flags as the program does.
func parse(args ...string) (gateway.Options, error) {
	var o gateway.Options
	fs := flag.NewFlagSet("berth-gateway", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	o.BindFlags(fs)
	fs.String("kubeconfig", "from the environment", "")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	return o, errors.Join(o.Complete(fs), o.Validate())
}

// What needs a cluster, what needs none, and what would serve others is refused, each
// with the flag's name.
func TestStandaloneFlags(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args string
		want []string
	}{
		"alone":                      {"--standalone", nil},
		"on another port":            {"--standalone --listen=127.0.0.1:18080 --health-listen=127.0.0.1:0", nil},
		"IPv6":                       {"--standalone --listen=[::1]:8080", nil},
		"with what is so anyway":     {"--standalone --auth=none", nil},
		"with its own":               {"--standalone --agent=/a --max-sessions=1 --artifact-stores=f", nil},
		"every address":              {"--standalone --listen=:8080", []string{"--standalone", "loopback"}},
		"no session":                 {"--standalone --max-sessions=0", []string{"--max-sessions=0"}},
		"less than none":             {"--standalone --max-sessions=-1", []string{"--max-sessions=-1"}},
		"tokens of a cluster":        {"--standalone --auth=tokenreview", []string{"--auth=tokenreview"}},
		"every flag of a cluster":    {"--standalone --audience=a --namespace=n --create-sandboxes=false --template=t --start-deadline=1s --key-namespace=n --key-secret=s --kubeconfig=k", []string{"--audience ", "--namespace ", "--create-sandboxes ", "--template ", "--start-deadline ", "--key-namespace ", "--key-secret ", "--kubeconfig "}},
		"an agent with a cluster":    {"--agent=/a", []string{"--agent ", "--standalone"}},
		"sessions with a cluster":    {"--max-sessions=1", []string{"--max-sessions ", "--standalone"}},
		"switched off, a cluster's":  {"--standalone=false --template=t", nil},
		"switched off, with its own": {"--standalone=false --agent=a", []string{"--agent "}},
	}
	for name, tc := range tests {
		_, err := parse(strings.Fields(tc.args)...)
		if (err == nil) != (tc.want == nil) {
			t.Errorf("%s: error %v", name, err)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want it to contain %q", name, err, want)
			}
		}
	}
}

func TestStandaloneDefaults(t *testing.T) {
	t.Parallel()
	o, err := parse("--standalone", "--drain-delay=1s")
	if err != nil || o.Auth != "none" || o.Listen != "127.0.0.1:8080" || o.HealthListen != "127.0.0.1:9090" ||
		o.ShutdownTimeout != 5*time.Second || o.DrainDelay != time.Second || o.Standalone.MaxSessions != 64 {
		t.Errorf("got %+v, %v", o, err)
	}
	if o, err = parse(); err != nil || o.Listen != ":8080" || o.Auth != "tokenreview" || o.DrainDelay != 5*time.Second {
		t.Errorf("with a cluster: %+v, %v", o, err)
	}
}
