package gateway

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// StandaloneOptions are those of a gateway without a cluster.
type StandaloneOptions struct {
	// Enabled: sessions run on this machine.
	Enabled bool
	// Agent is the berth-agent; empty looks for it.
	Agent string
	// MaxSessions is how many there may be at a time.
	MaxSessions int
	// Out is where is written how the gateway is used. It has no flag.
	Out io.Writer
}

// standaloneDefaults are those of flags that mean something else without a
// cluster: nothing is to be reached from elsewhere, and nobody waits at a terminal
// for a load balancer.
var standaloneDefaults = map[string]string{
	"auth":             AuthNone,
	"listen":           "127.0.0.1:8080",
	"health-listen":    "127.0.0.1:9090",
	"drain-delay":      "0s",
	"shutdown-timeout": (5 * time.Second).String(),
}

// clusterFlags are those that mean nothing without a cluster.
var clusterFlags = []string{
	"audience", "namespace", "create-sandboxes", "template", "start-deadline", "key-namespace", "key-secret", "kubeconfig",
}

// standaloneFlags are those that mean nothing with one.
var standaloneFlags = []string{"agent", "max-sessions"}

func (s *StandaloneOptions) bindFlags(fs *flag.FlagSet) {
	fs.BoolVar(&s.Enabled, "standalone", false, "need no cluster: run sessions on this machine, for people who develop against the gateway. It is no security boundary, and listens on loopback only: 127.0.0.1:8080, and 127.0.0.1:9090 for health, if not given")
	fs.StringVar(&s.Agent, "agent", "", "berth-agent of the sessions of --standalone; the one beside this program, or on PATH, if empty")
	fs.IntVar(&s.MaxSessions, "max-sessions", 64, "how many sessions --standalone runs at a time")
}

// Complete sets what --standalone changes, once fs has been parsed. It refuses
// flags that mean nothing with it, or without.
func (o *Options) Complete(fs *flag.FlagSet) error {
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	refused, why := standaloneFlags, "is for --standalone alone"
	if o.Standalone.Enabled {
		refused, why = clusterFlags, "is for a cluster, and with --standalone there is none"
	}
	var errs []error
	for _, name := range refused {
		if given[name] {
			errs = append(errs, fmt.Errorf("--%s %s: leave it out", name, why))
		}
	}
	if !o.Standalone.Enabled {
		return errors.Join(errs...)
	}
	if given["auth"] && o.Auth != AuthNone {
		errs = append(errs, fmt.Errorf("--auth=%s needs a cluster: with --standalone callers are not authenticated", o.Auth))
	}
	for name, value := range standaloneDefaults {
		if !given[name] {
			errs = append(errs, fs.Set(name, value))
		}
	}
	return errors.Join(errs...)
}

// scheme is that of the gateway's URL.
func (o *Options) scheme() string {
	if o.TLSCert != "" {
		return "https"
	}
	return "http"
}

// validate returns every fault. loopback says that the gateway can't be reached
// from another machine.
func (s *StandaloneOptions) validate(loopback bool) error {
	if !s.Enabled {
		return nil
	}
	var errs []error
	if !loopback {
		errs = append(errs, errors.New("--standalone runs commands as you for whoever reaches it: --listen must be a loopback address, such as 127.0.0.1:8080"))
	}
	if s.MaxSessions <= 0 {
		errs = append(errs, fmt.Errorf("--max-sessions=%d: want more than 0", s.MaxSessions))
	}
	return errors.Join(errs...)
}
