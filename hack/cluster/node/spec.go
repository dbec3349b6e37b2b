// Package node is one machine of the cluster: namespaces of its own for mounts,
// network, processes and host name, and the daemons that run in them. The first
// node runs the control plane too.
//
// Everything that could collide with the machine or with another cluster is
// behind a namespace, so all clusters use the same addresses and sockets. What
// namespaces don't part is named by the cluster: the state folder and the cgroup.
package node

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// Addresses, the same in every cluster: no route leads out of its namespaces.
const (
	// NodeCIDR holds the nodes: node i has the address i+1.
	NodeCIDR = "172.30.0.0/24"
	// PodCIDR holds all pods. Each node has a /22 of it: with 250 pods at a time
	// an address isn't used again at once.
	PodCIDR = "10.244.0.0/16"
	// ServiceCIDR holds the Services' addresses.
	ServiceCIDR = "10.96.0.0/16"
	// ServiceAPI is the address of the Service default/kubernetes.
	ServiceAPI = "10.96.0.1"
	// APIPort is where the first node's API server listens.
	APIPort = 6443
	// MaxNodes is how many /22 are in PodCIDR.
	MaxNodes = 64
)

// PauseImage is the image of every pod's sandbox container.
const PauseImage = "berth.dev/cluster/pause:v0"

// Spec says everything about a node. It's written down before the node starts; a
// node whose written spec differs from the wanted one is started anew.
type Spec struct {
	// Cluster is the cluster's ID, unique on the machine.
	Cluster string `json:"cluster"`
	// Index counts the nodes from 0, which is the control plane's.
	Index int `json:"index"`
	// State is the cluster's state folder.
	State string `json:"state"`
	// Binaries maps each program's name to its path in the cache.
	Binaries map[string]string `json:"binaries"`
	// NetworkPolicy runs a policy engine on the node.
	NetworkPolicy bool `json:"networkPolicy"`
	// KwokStages is the file of kwok's stages. Empty: no kwok.
	KwokStages string `json:"kwokStages,omitempty"`
}

// Name is the node's name in Kubernetes.
func (s Spec) Name() string { return Name(s.Index) }

// Name is the name of the node of this index.
func Name(index int) string { return fmt.Sprintf("node%d", index) }

// Dir is the node's own folder.
func (s Spec) Dir() string { return filepath.Join(s.State, "nodes", s.Name()) }

// File is a path in the node's own folder.
func (s Spec) File(elem ...string) string {
	return filepath.Join(append([]string{s.Dir()}, elem...)...)
}

// PKI is a file of the cluster's keys and certificates.
func (s Spec) PKI(name string) string { return filepath.Join(s.State, "pki", name) }

// Kubeconfig is the file that a daemon, or "admin", reaches the API server with.
func (s Spec) Kubeconfig(user string) string {
	return filepath.Join(s.State, "kubeconfig", user+".conf")
}

// ControlPlane says whether the node runs etcd and the API server.
func (s Spec) ControlPlane() bool { return s.Index == 0 }

// CgroupRoot is the cgroup of all pods of the node, in each hierarchy.
func (s Spec) CgroupRoot() string { return CgroupOf(s.Cluster) + "/" + s.Name() }

// CgroupOf is the cgroup of all nodes of a cluster.
func CgroupOf(cluster string) string { return "/berth-" + cluster }

// IP is the address of the node of this index.
func IP(index int) net.IP { return net.IPv4(172, 30, 0, byte(index+1)).To4() }

// IP is the node's address.
func (s Spec) IP() net.IP { return IP(s.Index) }

// podNetwork is the range of the pods of the node of this index.
func podNetwork(index int) *net.IPNet {
	return &net.IPNet{IP: net.IPv4(10, 244, byte(4*index), 0).To4(), Mask: net.CIDRMask(22, 32)}
}

// PodNetwork is the range of the node's pods.
func (s Spec) PodNetwork() *net.IPNet { return podNetwork(s.Index) }

// APIServer is the URL of the API server.
func APIServer() string { return fmt.Sprintf("https://%s:%d", IP(0), APIPort) }

// Load reads the spec that is in the node's folder.
func Load(dir string) (Spec, error) {
	data, err := os.ReadFile(filepath.Join(dir, "spec.json"))
	if err != nil {
		return Spec{}, err
	}
	var s Spec
	if err := json.Unmarshal(data, &s); err != nil {
		return Spec{}, fmt.Errorf("reading the spec of a node in %s: %w", dir, err)
	}
	return s, nil
}
