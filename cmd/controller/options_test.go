package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/berth-dev/berth/controllers"
	"github.com/berth-dev/berth/controllers/networkpolicy"
	"github.com/berth-dev/berth/controllers/sandbox/pod"
)

func parse(t *testing.T, args ...string) *options {
	t.Helper()
	o, flags := &options{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.BindFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	o := parse(t, "--agent-image=agent:1")
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	got, err := o.controllerOptions()
	if err != nil {
		t.Fatal(err)
	}
	want := controllers.Options{
		Namespace: "berth-system",
		Pod:       pod.Options{AgentImage: "agent:1", Injection: pod.ImageVolume, HostUsers: true},
		Network:   networkpolicy.Options{SystemNamespace: "berth-system"},
	}
	want.Network.ClusterCIDRs = got.Network.ClusterCIDRs[:0]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	if o.metricsAddress != ":9090" || o.healthAddress != ":9091" || !o.leaderElect {
		t.Errorf("addresses %s %s, leader election %v", o.metricsAddress, o.healthAddress, o.leaderElect)
	}
}

func TestValidateNamesEachWrongFlag(t *testing.T) {
	t.Parallel()
	err := parse(t, "--namespace=", "--agent-injection=magic", "--cluster-cidr=10.0.0.0/8", "--cluster-cidr=nonsense", "--log-level=loud").Validate()
	if err == nil {
		t.Fatal("wrong flags were taken")
	}
	for _, flag := range []string{"--namespace", "--agent-image", "--agent-injection=magic", "--cluster-cidr", "nonsense", "--log-level=loud"} {
		if !strings.Contains(err.Error(), flag) {
			t.Errorf("the error does not name %s: %v", flag, err)
		}
	}
}

func TestVersionIsTheLinkers(t *testing.T) {
	t.Parallel()
	command, out := newCommand(), &strings.Builder{}
	command.SetArgs([]string{"--version"})
	command.SetOut(out)
	if err := command.Execute(); err != nil || !strings.Contains(out.String(), version) {
		t.Errorf("--version prints %q, error %v; want %s", out, err, version)
	}
}
