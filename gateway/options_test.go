package gateway_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/gateway"
)

// Every fault of the flags is named, with what is wanted instead.
func TestOptionsValidate(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*gateway.Options)
		want   []string
	}{
		"defaults":                    {func(*gateway.Options) {}, nil},
		"no authentication, loopback": {func(o *gateway.Options) { o.Auth, o.Listen = "none", "127.0.0.1:8080" }, nil},
		"no authentication, IPv6":     {func(o *gateway.Options) { o.Auth, o.Listen = "none", "[::1]:8080" }, nil},
		"no authentication, by name":  {func(o *gateway.Options) { o.Auth, o.Listen = "none", "localhost:8080" }, nil},
		"no authentication, all":      {func(o *gateway.Options) { o.Auth = "none" }, []string{"loopback"}},
		"no authentication, 0.0.0.0":  {func(o *gateway.Options) { o.Auth, o.Listen = "none", "0.0.0.0:8080" }, []string{"loopback"}},
		"no authentication, [::]":     {func(o *gateway.Options) { o.Auth, o.Listen = "none", "[::]:8080" }, []string{"loopback"}},
		"no authentication, a name":   {func(o *gateway.Options) { o.Auth, o.Listen = "none", "localhost.example:8080" }, []string{"loopback"}},
		"unknown authentication":      {func(o *gateway.Options) { o.Auth = "basic" }, []string{"--auth=basic"}},
		"no audience":                 {func(o *gateway.Options) { o.Audience = "" }, []string{"--audience"}},
		"several": {
			func(o *gateway.Options) { o.Namespace, o.ReadyTimeout, o.MaxBody, o.MaxCalls = "A", 0, -1, 0 },
			[]string{"--namespace=A", "--ready-timeout=0s", "--max-body-bytes=-1", "--max-calls=0"},
		},
	}
	for name, tc := range tests {
		o := defaults()
		tc.change(&o)
		err := o.Validate()
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
