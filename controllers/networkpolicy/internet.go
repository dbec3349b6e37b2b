package networkpolicy

import (
	"fmt"
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
)

// closedRanges are no part of the Internet: what a session must not reach even
// with egress Internet, beside the cluster's own ranges (RFC 6890 and IANA's
// special-purpose registries).
var closedRanges = []string{
	"0.0.0.0/8",      // this network
	"10.0.0.0/8",     // private
	"100.64.0.0/10",  // shared, by carriers and clouds
	"127.0.0.0/8",    // loopback
	"169.254.0.0/16", // link-local, and clouds' metadata services
	"172.16.0.0/12",  // private
	"192.0.0.0/24",   // protocol assignments, and a cloud's metadata service
	"192.168.0.0/16", // private
	"224.0.0.0/4",    // multicast
	"240.0.0.0/4",    // reserved, and broadcast
	"::/128",         // unspecified
	"::1/128",        // loopback
	"64:ff9b::/96",   // NAT64, which leads to every IPv4 address
	"64:ff9b:1::/48", // NAT64, local
	"2002::/16",      // 6to4, the same
	"fc00::/7",       // unique local
	"fe80::/10",      // link-local
	"ff00::/8",       // multicast
}

// internet lets everything out but the closed ranges and the cluster's own.
func internet(clusterCIDRs []netip.Prefix) networkingv1.NetworkPolicyEgressRule {
	var v4, v6 []string
	closed := clusterCIDRs
	for _, text := range closedRanges {
		closed = append(slices.Clip(closed), netip.MustParsePrefix(text))
	}
	for _, prefix := range closed {
		if text := prefix.Masked().String(); prefix.Addr().Is4() {
			v4 = append(v4, text)
		} else {
			v6 = append(v6, text)
		}
	}
	return networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{
		{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: sortedSet(v4)}},
		{IPBlock: &networkingv1.IPBlock{CIDR: "::/0", Except: sortedSet(v6)}},
	}}
}

func sortedSet(values []string) []string {
	slices.Sort(values)
	return slices.Compact(values)
}

// ParseCIDRs reads ranges such as 10.96.0.0/12. One that covers everything is an
// error, since no exception may be as large as its block.
func ParseCIDRs(texts []string) ([]netip.Prefix, error) {
	prefixes := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("cluster range: %w", err)
		}
		if prefix.Bits() == 0 {
			return nil, fmt.Errorf("cluster range %q covers every address", text)
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, nil
}
