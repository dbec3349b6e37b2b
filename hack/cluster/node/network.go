package node

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	// fabric is the bridge in the first node's namespace that all nodes hang on.
	fabric = "fabric"
	// uplink is the other nodes' interface.
	uplink = "eth0"
)

// setUpNetwork makes the node's network in the namespace of the calling process.
// firstNode is the namespace of the first node, nil on the first node itself.
func setUpNetwork(s Spec, firstNode *os.File) error {
	var link netlink.Link
	var err error
	if s.ControlPlane() {
		link, err = addFabric()
	} else {
		link, err = joinFabric(s, firstNode)
	}
	if err != nil {
		return fmt.Errorf("connecting the node: %w", err)
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("starting the loopback interface: %w", err)
	}
	if err := setAddress(s, link); err != nil {
		return err
	}
	if err := addRoutes(s, link); err != nil {
		return err
	}
	return setSysctls()
}

func addFabric() (netlink.Link, error) {
	link := &netlink.Bridge{LinkAttrs: named(fabric)}
	return link, netlink.LinkAdd(link)
}

// joinFabric makes a cable from this namespace to the bridge in the first node's.
func joinFabric(s Spec, firstNode *os.File) (netlink.Link, error) {
	link := &netlink.Veth{
		LinkAttrs:     named(uplink),
		PeerName:      s.Name(),
		PeerNamespace: netlink.NsFd(firstNode.Fd()),
	}
	if err := netlink.LinkAdd(link); err != nil {
		return nil, err
	}
	plugged := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		plugged <- plugIn(s.Name(), firstNode)
	}()
	return link, <-plugged
}

// plugIn connects the cable's other end. It moves its thread.
func plugIn(name string, firstNode *os.File) error {
	if err := unix.Setns(int(firstNode.Fd()), unix.CLONE_NEWNET); err != nil {
		return err
	}
	bridge, err := netlink.LinkByName(fabric)
	if err != nil {
		return err
	}
	peer, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return errors.Join(netlink.LinkSetMaster(peer, bridge), netlink.LinkSetUp(peer))
}

func named(name string) netlink.LinkAttrs {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	return attrs
}

func setAddress(s Spec, link netlink.Link) error {
	_, network, err := net.ParseCIDR(NodeCIDR)
	if err != nil {
		return err
	}
	address := &netlink.Addr{IPNet: &net.IPNet{IP: s.IP(), Mask: network.Mask}}
	if err := netlink.AddrAdd(link, address); err != nil {
		return fmt.Errorf("setting the node's address: %w", err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("starting the node's interface: %w", err)
	}
	return nil
}

// addRoutes leads to the pods of all nodes that there may ever be, and everything
// else into the bridge: Services have addresses that no interface has, and a
// packet to one needs a route before kube-proxy can send it elsewhere.
func addRoutes(s Spec, link netlink.Link) error {
	for i := range MaxNodes {
		if i == s.Index {
			continue
		}
		route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: podNetwork(i), Gw: IP(i)}
		if err := netlink.RouteAdd(route); err != nil {
			return fmt.Errorf("adding a route to the pods of %s: %w", Name(i), err)
		}
	}
	_, all, err := net.ParseCIDR("0.0.0.0/0")
	if err != nil {
		return err
	}
	route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: all, Scope: netlink.SCOPE_LINK}
	if err := netlink.RouteAdd(route); err != nil {
		return fmt.Errorf("adding the default route: %w", err)
	}
	return nil
}

// setSysctls sets what belongs to the network namespace, not to the machine.
func setSysctls() error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return fmt.Errorf("turning on forwarding: %w", err)
	}
	// The bridge is a cable between nodes: its packets are each node's to filter.
	err := os.WriteFile("/proc/sys/net/bridge/bridge-nf-call-iptables", []byte("0"), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keeping bridged packets out of iptables: %w", err)
	}
	return nil
}
