package components

import (
	"embed"
	"fmt"
	"slices"

	"golang.org/x/mod/modfile"
)

// pins holds one go.mod and go.sum per group of components, under names that
// don't make Go take their folder for a module. They are the one place where a
// version is written down.
//
//go:embed *.mod *.sum pause/main.go
var pins embed.FS

// Component is one thing that is built from Go modules: one or several binaries
// that share a folder of the cache.
type Component struct {
	// Name is what people call it, and the beginning of its folder's name.
	Name string
	// Pins names the module files that fix its dependencies: <Pins>.mod, <Pins>.sum.
	Pins string
	// Module is the module whose version is the component's. Empty for our own.
	Module string
	// Packages maps each binary's name to the package that it is built from.
	Packages map[string]string
	// VersionVar is the variable that the linker sets to the version.
	VersionVar string
	// LDFlags are further flags for the linker.
	LDFlags []string
	// Tags are the build tags.
	Tags string
	// Cgo says that a C compiler is needed.
	Cgo bool
	// DebianBuild are the Debian packages that building it needs.
	DebianBuild []string
	// Extract maps a file of the result to the files of the module, given as
	// glob patterns, that are joined into it as YAML documents.
	Extract map[string][]string
}

const kubernetesModule = "k8s.io/kubernetes"

// kubernetes describes one command of k8s.io/kubernetes. Without gitVersion a
// client takes it for v0.0.0-master and turns features off.
func kubernetes(name string) Component {
	return Component{
		Name:       name,
		Pins:       "kubernetes",
		Module:     kubernetesModule,
		Packages:   map[string]string{name: kubernetesModule + "/cmd/" + name},
		VersionVar: "k8s.io/component-base/version.gitVersion",
	}
}

// Catalog lists every component, in the order in which it pays to build them:
// what envtest needs first.
func Catalog() []Component {
	const (
		containerd = "github.com/containerd/containerd/v2"
		runc       = "github.com/opencontainers/runc"
		cni        = "github.com/containernetworking/plugins"
		kubeRouter = "github.com/cloudnativelabs/kube-router/v2"
		kwok       = "sigs.k8s.io/kwok"
		etcd       = "go.etcd.io/etcd/server/v3"
	)
	return []Component{
		{Name: "etcd", Pins: "kubernetes", Module: etcd, Packages: map[string]string{"etcd": etcd}},
		kubernetes("kube-apiserver"),
		kubernetes("kubectl"),
		{
			Name: "containerd", Pins: "containerd", Module: containerd,
			Packages: map[string]string{
				"containerd":              containerd + "/cmd/containerd",
				"containerd-shim-runc-v2": containerd + "/cmd/containerd-shim-runc-v2",
				"ctr":                     containerd + "/cmd/ctr",
			},
			VersionVar: containerd + "/version.Version",
			Tags:       "no_btrfs,no_zfs,no_devmapper",
		},
		{
			Name: "runc", Pins: "runc", Module: runc,
			Packages:    map[string]string{"runc": runc},
			Tags:        "seccomp,netgo,osusergo",
			LDFlags:     []string{"-extldflags=-static"},
			Cgo:         true,
			DebianBuild: []string{"gcc", "libc6-dev", "libseccomp-dev", "pkg-config"},
		},
		{
			Name: "cni-plugins", Pins: "cni", Module: cni,
			Packages: map[string]string{
				"host-local": cni + "/plugins/ipam/host-local",
				"loopback":   cni + "/plugins/main/loopback",
				"portmap":    cni + "/plugins/meta/portmap",
				"ptp":        cni + "/plugins/main/ptp",
			},
		},
		{Name: "pause", Pins: "pause", Packages: map[string]string{"pause": "."}},
		kubernetes("kubelet"),
		kubernetes("kube-controller-manager"),
		kubernetes("kube-scheduler"),
		kubernetes("kube-proxy"),
		{
			Name: "kube-router", Pins: "kube-router", Module: kubeRouter,
			Packages:   map[string]string{"kube-router": kubeRouter + "/cmd/kube-router"},
			VersionVar: kubeRouter + "/pkg/version.Version",
		},
		{
			Name: "kwok", Pins: "kwok", Module: kwok,
			Packages: map[string]string{"kwok": kwok + "/cmd/kwok"},
			Extract: map[string][]string{"stages.yaml": {
				"kustomize/stage/node/fast/node-*.yaml",
				"kustomize/stage/node/heartbeat-with-lease/node-*.yaml",
				"kustomize/stage/pod/fast/pod-*.yaml",
			}},
		},
	}
}

// EnvtestNames are the components that a KUBEBUILDER_ASSETS folder holds.
var EnvtestNames = []string{"etcd", "kube-apiserver", "kubectl"}

// Named returns the components of these names in the order of the catalog, all
// of them if there are no names.
func Named(names ...string) ([]Component, error) {
	all := Catalog()
	if len(names) == 0 {
		return all, nil
	}
	var found []Component
	for _, c := range all {
		if slices.Contains(names, c.Name) {
			found = append(found, c)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(c Component) bool { return c.Name == name }) {
			return nil, fmt.Errorf("no component is called %q: `cluster build --list` names them all", name)
		}
	}
	return found, nil
}

// modFiles returns the go.mod and go.sum that pin the component.
func (c Component) modFiles() (mod, sum []byte) {
	mod, err := pins.ReadFile(c.Pins + ".mod")
	if err != nil {
		panic(err) // embedded: a misspelt name in the catalog
	}
	sum, err = pins.ReadFile(c.Pins + ".sum")
	if err != nil {
		panic(err)
	}
	return mod, sum
}

// Version is the pinned version of the component's module, "v0" for our own.
func (c Component) Version() string {
	if c.Module == "" {
		return "v0"
	}
	mod, _ := c.modFiles()
	file, err := modfile.ParseLax(c.Pins+".mod", mod, nil)
	if err != nil {
		panic(err)
	}
	for _, r := range file.Require {
		if r.Mod.Path == c.Module {
			return r.Mod.Version
		}
	}
	panic(fmt.Sprintf("%s.mod doesn't require %s", c.Pins, c.Module))
}
