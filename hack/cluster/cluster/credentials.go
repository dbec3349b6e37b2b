package cluster

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"net"
	"os"
	"path/filepath"
	"text/template"

	"github.com/berth-dev/berth/hack/cluster/node"
	"github.com/berth-dev/berth/hack/cluster/pki"
	"github.com/berth-dev/berth/hack/cluster/process"
)

//go:embed kubeconfig.tmpl
var kubeconfigText string

var kubeconfigTemplate = template.Must(template.New("kubeconfig").
	Funcs(template.FuncMap{"base64": base64.StdEncoding.EncodeToString}).Parse(kubeconfigText))

// admins is the group that may do everything. Only what runs outside of pods
// belongs to it: the user, the API server towards kubelet, and the test tools
// kube-router and kwok, which come without narrower rules for this way of running.
var admins = []string{"system:masters"}

// certificates lists all holders: the daemons and the administrator.
func certificates(nodes int) []pki.Certificate {
	list := []pki.Certificate{
		{
			Name: "kube-apiserver", User: "kube-apiserver",
			Names:     []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
			Addresses: []net.IP{net.IPv4(127, 0, 0, 1), node.IP(0), net.ParseIP(node.ServiceAPI)},
		},
		{Name: "kube-apiserver-kubelet", User: "kube-apiserver-kubelet", Groups: admins},
		{Name: "admin", User: "admin", Groups: admins},
		{Name: "kube-controller-manager", User: "system:kube-controller-manager"},
		{Name: "kube-scheduler", User: "system:kube-scheduler"},
		{Name: "kube-proxy", User: "system:kube-proxy"},
		{Name: "kube-router", User: "kube-router", Groups: admins},
		{Name: "kwok", User: "kwok", Groups: admins},
	}
	for i := range nodes {
		list = append(list, pki.Certificate{
			Name: "kubelet-" + node.Name(i), User: "system:node:" + node.Name(i), Groups: []string{"system:nodes"},
			Names: []string{node.Name(i)}, Addresses: []net.IP{node.IP(i), net.IPv4(127, 0, 0, 1)},
		})
	}
	return list
}

// serving are the certificates that nobody is a client with.
var serving = map[string]bool{"kube-apiserver": true, "kube-apiserver-kubelet": true}

// writeCredentials makes what is missing of keys, certificates and kubeconfigs.
func (c Cluster) writeCredentials(nodes int) error {
	authority, err := pki.Open(filepath.Join(c.State(), "pki"))
	if err != nil {
		return err
	}
	list := certificates(nodes)
	if err := authority.Ensure(list...); err != nil {
		return err
	}
	if err := authority.EnsureKeyPair("service-account"); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.Kubeconfig()), 0o755); err != nil {
		return err
	}
	for _, holder := range list {
		if serving[holder.Name] {
			continue
		}
		if err := c.writeKubeconfig(authority.Dir, holder.Name); err != nil {
			return err
		}
	}
	return nil
}

// writeKubeconfig writes a kubeconfig that holds its keys in itself.
func (c Cluster) writeKubeconfig(pkiDir, holder string) error {
	values := struct {
		Cluster, Server, User       string
		Authority, Certificate, Key []byte
	}{Cluster: c.ID, Server: node.APIServer(), User: holder}
	for file, target := range map[string]*[]byte{
		"ca.crt": &values.Authority, holder + ".crt": &values.Certificate, holder + ".key": &values.Key,
	} {
		data, err := os.ReadFile(filepath.Join(pkiDir, file))
		if err != nil {
			return err
		}
		*target = data
	}
	var out bytes.Buffer
	if err := kubeconfigTemplate.Execute(&out, values); err != nil {
		return err
	}
	path := filepath.Join(filepath.Dir(c.Kubeconfig()), holder+".conf")
	return process.WriteFile(path, out.Bytes(), 0o600)
}
