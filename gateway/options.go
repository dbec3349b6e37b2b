package gateway

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/session"
)

// Options of a gateway.
type Options struct {
	// Listen is the address of /mcp and /sessions; HealthListen that of /livez,
	// /readyz and /metrics.
	Listen       string
	HealthListen string

	// Auth are the ways to authenticate callers, comma-separated. Audience is that of
	// tokens for TokenReview; OIDC says which of an issuer's are taken.
	Auth     string
	Audience string
	OIDC     authn.OIDCOptions

	// PublicURL is the gateway's as clients know it: scheme and host.
	PublicURL string
	// TLSCert and TLSKey are files; plain HTTP if empty.
	TLSCert string
	TLSKey  string

	AllowedHosts   []string
	AllowedOrigins []string

	// Namespace is where sessions of callers are that have no namespace of their own.
	Namespace       string
	CreateSandboxes bool
	Template        string
	StartDeadline   time.Duration
	ReadyTimeout    time.Duration

	// KeyNamespace and KeyName are the signing key's Secret.
	KeyNamespace string
	KeyName      string

	// ArtifactStores is the file that defines them; none if empty.
	ArtifactStores string

	Standalone StandaloneOptions

	// Traces is where spans go; nowhere if nil. It has no flag: see tracing.NewProvider.
	Traces trace.TracerProvider

	MaxBody         int64
	MaxCalls        int
	TaskAfter       time.Duration
	FlushAfter      time.Duration
	KeepAlive       time.Duration
	DrainDelay      time.Duration
	ShutdownTimeout time.Duration
}

// BindFlags declares the flags of o, with their defaults.
func (o *Options) BindFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.Listen, "listen", ":8080", "address of /mcp and /sessions")
	fs.StringVar(&o.HealthListen, "health-listen", ":9090", "address of /livez, /readyz and /metrics")
	o.bindAuthFlags(fs)
	o.bindTLSFlags(fs)
	fs.Func("allowed-hosts", "comma-separated names that the Host header may hold; any if not given, or the loopback names with --auth=none", list(&o.AllowedHosts))
	fs.Func("allowed-origins", "comma-separated values of the Origin header of web pages that may call; none if not given", list(&o.AllowedOrigins))
	fs.StringVar(&o.Namespace, "namespace", "sandboxes", "namespace of the sessions of callers that are no service accounts")
	fs.BoolVar(&o.CreateSandboxes, "create-sandboxes", true, "make a Sandbox for a session that has none")
	fs.StringVar(&o.Template, "template", berthv1alpha1.DefaultTemplateName, "SandboxTemplate of the Sandboxes made")
	fs.DurationVar(&o.StartDeadline, "start-deadline", 90*time.Second, "startDeadline of the Sandboxes made: they are deleted if they have not started by then")
	fs.DurationVar(&o.ReadyTimeout, "ready-timeout", 60*time.Second, "how long a call waits for its session to be ready")
	fs.StringVar(&o.KeyNamespace, "key-namespace", "berth-system", "namespace of the signing key's Secret")
	fs.StringVar(&o.KeyName, "key-secret", "berth-signing-key", "name of the signing key's Secret")
	fs.StringVar(&o.ArtifactStores, "artifact-stores", "", "file that defines the artifact stores which templates may name; none if not given")
	fs.Int64Var(&o.MaxBody, "max-body-bytes", 4<<20, "largest request body")
	fs.DurationVar(&o.TaskAfter, "task-after", 5*time.Second, "how long a command may take before it becomes a task, if its client declares MCP's extension for them")
	fs.IntVar(&o.MaxCalls, "max-calls", 2000, "most calls and uploads at a time; one caller may have three quarters of them")
	fs.DurationVar(&o.FlushAfter, "flush-after", time.Second, "silence after which a call's response headers are sent")
	fs.DurationVar(&o.KeepAlive, "keep-alive", 15*time.Second, "time between the comments that keep a silent call's connection alive")
	fs.DurationVar(&o.DrainDelay, "drain-delay", 5*time.Second, "how long /readyz fails before a shutdown closes the port")
	fs.DurationVar(&o.ShutdownTimeout, "shutdown-timeout", 330*time.Second, "how long a shutdown waits for running calls")
	o.Standalone.bindFlags(fs)
}

// Validate returns every fault of o.
func (o *Options) Validate() error {
	errs := []error{o.Standalone.validate(o.loopback()), o.validateAuth(), o.validateTLS()}
	for flag, name := range map[string]string{"--namespace": o.Namespace, "--template": o.Template} {
		if !session.ValidID(name) {
			errs = append(errs, fmt.Errorf("%s=%s: want a DNS-1123 label", flag, name))
		}
	}
	for flag, d := range map[string]time.Duration{
		"--start-deadline": o.StartDeadline, "--ready-timeout": o.ReadyTimeout, "--flush-after": o.FlushAfter,
		"--keep-alive": o.KeepAlive, "--shutdown-timeout": o.ShutdownTimeout,
	} {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("%s=%s: want more than 0", flag, d))
		}
	}
	if o.DrainDelay < 0 {
		errs = append(errs, fmt.Errorf("--drain-delay=%s: want 0 or more", o.DrainDelay))
	}
	if o.MaxBody <= 0 {
		errs = append(errs, fmt.Errorf("--max-body-bytes=%d: want more than 0", o.MaxBody))
	}
	if o.TaskAfter < time.Millisecond {
		errs = append(errs, fmt.Errorf("--task-after=%s: want 1ms or more", o.TaskAfter))
	}
	if o.MaxCalls < 1 {
		errs = append(errs, fmt.Errorf("--max-calls=%d: want 1 or more", o.MaxCalls))
	}
	return errors.Join(errs...)
}

// loopback tells whether Listen can't be reached from another machine.
func (o *Options) loopback() bool {
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// list returns a flag function that reads comma-separated values.
func list(into *[]string) func(string) error {
	return func(s string) error {
		for item := range strings.SplitSeq(s, ",") {
			if item = strings.TrimSpace(item); item != "" {
				*into = append(*into, item)
			}
		}
		return nil
	}
}
