package networkpolicy

import (
	"net/netip"
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/berth-dev/berth/api/v1alpha1"
)

// open tells whether the rule lets an address out on any port.
func open(t *testing.T, rule networkingv1.NetworkPolicyEgressRule, address string) bool {
	t.Helper()
	ip := netip.MustParseAddr(address)
	return slices.ContainsFunc(rule.To, func(peer networkingv1.NetworkPolicyPeer) bool {
		if peer.IPBlock == nil || !netip.MustParsePrefix(peer.IPBlock.CIDR).Contains(ip) {
			return false
		}
		return !slices.ContainsFunc(peer.IPBlock.Except, func(except string) bool {
			return netip.MustParsePrefix(except).Contains(ip)
		})
	})
}

func TestInternetIsAllButPrivateSharedLocalAndTheCluster(t *testing.T) {
	t.Parallel()
	cidrs, err := ParseCIDRs([]string{"203.0.113.0/24", "2001:db8:1::/48", "10.96.0.0/12"})
	if err != nil {
		t.Fatal(err)
	}
	rule := internet(cidrs)
	for address, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "172.32.0.1": true, "100.63.255.255": true, "2606:4700::1111": true,
		"10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "100.127.255.255": false, "127.0.0.1": false,
		"0.0.0.0": false, "224.0.0.1": false, "255.255.255.255": false, "192.0.0.192": false,
		"203.0.113.7": false, "10.96.0.1": false,
		"::1": false, "fd00::1": false, "fe80::1": false, "ff02::1": false, "fd00:ec2::254": false,
		"64:ff9b::a00:1": false, "2002:a00:1::1": false, "2001:db8:1::7": false,
	} {
		if got := open(t, rule, address); got != want {
			t.Errorf("%s is open: %v, want %v", address, got, want)
		}
	}
}

func TestInternetDoesNotChangeTheConfiguredRanges(t *testing.T) {
	t.Parallel()
	cidrs := make([]netip.Prefix, 1, 64)
	cidrs[0] = netip.MustParsePrefix("203.0.113.0/24")
	internet(cidrs)
	if extra := cidrs[:2][1]; extra.IsValid() {
		t.Errorf("the caller's slice was written: %s", extra)
	}
}

func TestEachClassOpensNoMoreThanItSays(t *testing.T) {
	t.Parallel()
	if ForClass("team", v1alpha1.EgressNone, Options{}) != nil {
		t.Error("None has a policy")
	}
	if ForClass("team", "Unheard", Options{}) != nil {
		t.Error("an unknown class opens something")
	}
	for class, rules := range map[v1alpha1.EgressClass]int{v1alpha1.EgressClusterDNS: 1, v1alpha1.EgressInternet: 2} {
		policy := ForClass("team", class, Options{})
		if got := len(policy.Spec.Egress); got != rules {
			t.Errorf("%s has %d rules, want %d", class, got, rules)
		}
		if got := policy.Spec.PodSelector.MatchLabels[v1alpha1.LabelEgress]; got != string(class) {
			t.Errorf("%s selects pods of class %q", class, got)
		}
		for _, rule := range policy.Spec.Egress {
			if len(rule.To) == 0 {
				t.Errorf("%s has a rule to everywhere", class)
			}
		}
	}
	baseline := Baseline("team", Options{SystemNamespace: "berth-system"})
	if len(baseline.Spec.Egress) != 0 || len(baseline.Spec.Ingress) != 1 || len(baseline.Spec.PolicyTypes) != 2 {
		t.Errorf("the baseline is %+v", baseline.Spec)
	}
}

func TestClusterRangesAreChecked(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "10.0.0.0", "10.0.0.0/33", "0.0.0.0/0", "::/0"} {
		if _, err := ParseCIDRs([]string{bad}); err == nil {
			t.Errorf("range %q was taken", bad)
		}
	}
}
