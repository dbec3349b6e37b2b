package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/berth-dev/berth/controllers"
	"github.com/berth-dev/berth/controllers/networkpolicy"
	"github.com/berth-dev/berth/controllers/sandbox/pod"
)

// options are the flags of berth-controller.
type options struct {
	namespace       string
	agentImage      string
	agentInjection  string
	allowHostAccess bool
	hostUsers       bool
	clusterCIDRs    []string
	leaderElect     bool
	metricsAddress  string
	healthAddress   string
	logLevel        string
}

// BindFlags gives each option its flag and its default.
func (o *options) BindFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.namespace, "namespace", "berth-system", "namespace of the controller itself: its lease and the signing key are there")
	flags.StringVar(&o.agentImage, "agent-image", "", "image that holds /berth-agent (required)")
	flags.StringVar(&o.agentInjection, "agent-injection", string(pod.ImageVolume), "how the agent gets into pods: image-volume, or init-container for clusters without image volumes")
	flags.BoolVar(&o.allowHostAccess, "allow-host-access", false, "let templates ask for host namespaces, host ports, hostPath volumes and a shared process namespace")
	flags.BoolVar(&o.hostUsers, "host-users", true, "false puts each pod into a user namespace of its own, unless it has a runtimeClassName")
	flags.StringArrayVar(&o.clusterCIDRs, "cluster-cidr", nil, "range of the cluster's pods, services or nodes, closed to egress Internet; may be repeated")
	flags.BoolVar(&o.leaderElect, "leader-elect", true, "act only while holding the lease, so that several replicas can run")
	flags.StringVar(&o.metricsAddress, "metrics-address", ":9090", "where /metrics is served; 0 turns it off")
	flags.StringVar(&o.healthAddress, "health-address", ":9091", "where /healthz and /readyz are served")
	flags.StringVar(&o.logLevel, "log-level", "info", "debug, info or error")
}

// Validate says what is wrong with the flags, all of it.
func (o *options) Validate() error {
	var errs []error
	if o.namespace == "" {
		errs = append(errs, errors.New("--namespace is empty"))
	}
	if o.agentImage == "" {
		errs = append(errs, errors.New("--agent-image is required: the image that holds /berth-agent"))
	}
	switch pod.Injection(o.agentInjection) {
	case pod.ImageVolume, pod.InitContainer:
	default:
		errs = append(errs, fmt.Errorf("--agent-injection=%s: want %s or %s", o.agentInjection, pod.ImageVolume, pod.InitContainer))
	}
	if _, err := networkpolicy.ParseCIDRs(o.clusterCIDRs); err != nil {
		errs = append(errs, fmt.Errorf("--cluster-cidr: %w", err))
	}
	if _, known := logLevels[o.logLevel]; !known {
		errs = append(errs, fmt.Errorf("--log-level=%s: want debug, info or error", o.logLevel))
	}
	return errors.Join(errs...)
}

// controllerOptions are what the controllers take; the flags must be valid.
func (o *options) controllerOptions() (controllers.Options, error) {
	cidrs, err := networkpolicy.ParseCIDRs(o.clusterCIDRs)
	if err != nil {
		return controllers.Options{}, err
	}
	return controllers.Options{
		Namespace: o.namespace,
		Pod: pod.Options{
			AgentImage: strings.TrimSpace(o.agentImage), Injection: pod.Injection(o.agentInjection),
			AllowHostAccess: o.allowHostAccess, HostUsers: o.hostUsers,
		},
		Network: networkpolicy.Options{SystemNamespace: o.namespace, ClusterCIDRs: cidrs},
	}, nil
}
