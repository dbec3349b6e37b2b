package node

import (
	"fmt"
	"path/filepath"

	"github.com/berth-dev/berth/hack/cluster/process"
)

// Health of the daemons that others, or `up`, wait for.
const (
	etcdHealth  process.Probe = "http://127.0.0.1:2379/readyz"
	containerd  process.Probe = "unix:///run/containerd/containerd.sock"
	proxyHealth process.Probe = "http://127.0.0.1:10256/healthz"
	// routerHealth says 200 once the first synchronisation is done.
	routerHealth process.Probe = "http://127.0.0.1:20244/healthz"
)

// APIReady is the API server's readiness.
var APIReady = process.Probe(APIServer() + "/readyz")

// Readiness is what answers on the node when its daemons are ready, by daemon,
// to be asked in the node's network namespace.
func (s Spec) Readiness() map[string]process.Probe {
	probes := map[string]process.Probe{
		"kube-proxy": proxyHealth,
		"kubelet":    "http://127.0.0.1:10248/healthz",
	}
	if s.ControlPlane() {
		probes["etcd"] = etcdHealth
		probes["kube-apiserver"] = APIReady
		probes["kube-controller-manager"] = "https://127.0.0.1:10257/healthz"
		probes["kube-scheduler"] = "https://127.0.0.1:10259/readyz"
	}
	if s.NetworkPolicy {
		probes["kube-router"] = routerHealth
	}
	return probes
}

// Daemons lists what runs on the node.
func (s Spec) Daemons() []process.Daemon {
	var list []process.Daemon
	add := func(name string, after []process.Probe, args ...string) {
		list = append(list, process.Daemon{
			Name:  name,
			Argv:  append([]string{s.Binaries[name]}, args...),
			Env:   s.environment(),
			After: after,
		})
	}
	api := []process.Probe{APIReady}
	if s.ControlPlane() {
		add("etcd", nil, s.etcdArgs()...)
		add("kube-apiserver", []process.Probe{etcdHealth}, s.apiServerArgs()...)
		add("kube-controller-manager", api, s.controllerManagerArgs()...)
		add("kube-scheduler", api, "--kubeconfig="+s.Kubeconfig("kube-scheduler"), "--leader-elect=false",
			"--kube-api-qps=400", "--kube-api-burst=800")
	}
	if s.KwokStages != "" && s.ControlPlane() {
		add("kwok", api, "--kubeconfig="+s.Kubeconfig("kwok"), "--config="+s.KwokStages, "--v=WARN",
			"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake", "--node-ip="+s.IP().String(),
			"--cidr=10.128.0.0/10")
	}
	add("containerd", nil, "--config="+s.File("containerd.toml"))
	add("kubelet", append(api, containerd),
		"--config="+s.File("kubelet.yaml"), "--kubeconfig="+s.Kubeconfig("kubelet-"+s.Name()),
		"--hostname-override="+s.Name(), "--node-ip="+s.IP().String(), "--root-dir="+kubeletRoot,
		"--cert-dir="+s.File("kubelet-pki"))
	add("kube-proxy", api, "--config="+s.File("kube-proxy.yaml"))
	if s.NetworkPolicy {
		// It ends while kubelet hasn't registered the node, and is started again.
		add("kube-router", api, "--run-firewall=true", "--run-router=false", "--run-service-proxy=false",
			"--run-loadbalancer=false", "--enable-cni=false", "--kubeconfig="+s.Kubeconfig("kube-router"),
			"--hostname-override="+s.Name(), "--service-cluster-ip-range="+ServiceCIDR, "--health-port=20244")
	}
	return list
}

// environment is that of every daemon: containerd finds its shim on the PATH, and
// all of them the system's mount, nft, iptables and ipset.
func (s Spec) environment() []string {
	return []string{
		"PATH=" + filepath.Dir(s.Binaries["containerd"]) + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/root",
		"NODE_NAME=" + s.Name(),
	}
}

func (s Spec) etcdArgs() []string {
	return []string{
		"--data-dir=" + s.File("etcd"),
		"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
		"--listen-peer-urls=http://127.0.0.1:2380",
		"--unsafe-no-fsync", // what a power cut loses, `up` makes again
		"--log-level=warn",
	}
}

func (s Spec) apiServerArgs() []string {
	return []string{
		"--etcd-servers=http://127.0.0.1:2379",
		"--bind-address=0.0.0.0", fmt.Sprintf("--secure-port=%d", APIPort), "--advertise-address=" + s.IP().String(),
		"--tls-cert-file=" + s.PKI("kube-apiserver.crt"), "--tls-private-key-file=" + s.PKI("kube-apiserver.key"),
		"--client-ca-file=" + s.PKI("ca.crt"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + s.PKI("service-account.pub"),
		"--service-account-signing-key-file=" + s.PKI("service-account.key"),
		"--service-cluster-ip-range=" + ServiceCIDR,
		"--kubelet-client-certificate=" + s.PKI("kube-apiserver-kubelet.crt"),
		"--kubelet-client-key=" + s.PKI("kube-apiserver-kubelet.key"),
		"--kubelet-certificate-authority=" + s.PKI("ca.crt"),
		"--kubelet-preferred-address-types=InternalIP",
		"--allow-privileged=true",
		"--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000",
	}
}

func (s Spec) controllerManagerArgs() []string {
	return []string{
		"--kubeconfig=" + s.Kubeconfig("kube-controller-manager"),
		"--service-account-private-key-file=" + s.PKI("service-account.key"), "--root-ca-file=" + s.PKI("ca.crt"),
		"--cluster-signing-cert-file=" + s.PKI("ca.crt"), "--cluster-signing-key-file=" + s.PKI("ca.key"),
		"--flex-volume-plugin-dir=" + s.File("volume-plugins"),
		"--use-service-account-credentials=true", "--allocate-node-cidrs=false", "--leader-elect=false",
		"--kube-api-qps=400", "--kube-api-burst=800",
	}
}
