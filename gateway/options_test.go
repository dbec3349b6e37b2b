package gateway_test

import (
	"strings"
	"testing"
	"time"

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
		"an issuer": {func(o *gateway.Options) {
			o.Auth, o.OIDC.Issuer, o.OIDC.Audience = "oidc", "https://issuer.example", "berth"
		}, nil},
		"an issuer and the cluster": {func(o *gateway.Options) {
			o.Auth, o.OIDC.Issuer, o.OIDC.Audience = "oidc,tokenreview", "http://[::1]:1", "berth"
		}, nil},
		"an issuer alone, no audience": {func(o *gateway.Options) {
			o.Auth, o.Audience, o.OIDC.Issuer, o.OIDC.Audience = "oidc", "", "https://issuer.example", "berth"
		}, nil},
		"no issuer": {func(o *gateway.Options) { o.Auth = "oidc" }, []string{"--oidc-issuer=: want https://HOST", "--oidc-audience"}},
		"an issuer over plain HTTP": {func(o *gateway.Options) {
			o.Auth, o.OIDC.Issuer, o.OIDC.Audience = "oidc", "http://issuer.example", "berth"
		}, []string{"not https"}},
		"an issuer for nothing":     {func(o *gateway.Options) { o.OIDC.Issuer = "https://issuer.example" }, []string{"--oidc-issuer without --auth=oidc"}},
		"none and an issuer":        {func(o *gateway.Options) { o.Auth, o.Listen = "none,oidc", "127.0.0.1:8080" }, []string{"--auth=none,oidc"}},
		"the same twice":            {func(o *gateway.Options) { o.Auth = "oidc,oidc" }, []string{"--auth=oidc,oidc"}},
		"a public URL":              {func(o *gateway.Options) { o.PublicURL = "https://berth.example:8443" }, nil},
		"a public path":             {func(o *gateway.Options) { o.PublicURL = "https://berth.example/" }, []string{"--public-url=https://berth.example/"}},
		"a public name":             {func(o *gateway.Options) { o.PublicURL = "berth.example" }, []string{"--public-url=berth.example"}},
		"a certificate without key": {func(o *gateway.Options) { o.TLSCert = "tls.crt" }, []string{"--tls-cert and --tls-key"}},
		"a key without certificate": {func(o *gateway.Options) { o.TLSKey = "tls.key" }, []string{"--tls-cert and --tls-key"}},
		"several": {
			func(o *gateway.Options) {
				o.Namespace, o.ReadyTimeout, o.MaxBody, o.MaxCalls, o.TaskAfter = "A", 0, -1, 0, time.Millisecond-1
			},
			[]string{"--namespace=A", "--ready-timeout=0s", "--max-body-bytes=-1", "--max-calls=0", "--task-after=999.999µs"},
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
