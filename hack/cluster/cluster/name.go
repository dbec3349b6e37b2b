// Package cluster is what the commands do with a whole cluster: bring it up, take
// it down, look at it, give it images.
package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/berth-dev/berth/hack/cluster/components"
)

// validName is what a cluster may be called: it becomes part of the names of
// folders and cgroups.
var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// ID names a cluster on this machine: what the user calls it, and the checkout
// that it belongs to, so that the same name in two checkouts is two clusters.
func ID(name, checkout string) (string, error) {
	if !validName.MatchString(name) {
		return "", fmt.Errorf("%q is no name for a cluster: at most 32 lower-case letters, digits and inner dashes", name)
	}
	sum := sha256.Sum256([]byte(checkout))
	return name + "-" + hex.EncodeToString(sum[:4]), nil
}

// Checkout is the checkout that this program belongs to: the one it was built
// into, as hack/bin/cluster, else the one that the working directory is in.
func Checkout() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return "", err
	}
	if root, ok := strings.CutSuffix(filepath.Dir(program), "/hack/bin"); ok {
		return root, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	for parent := dir; ; parent = filepath.Dir(parent) {
		if _, err := os.Stat(filepath.Join(parent, ".git")); err == nil {
			return parent, nil
		}
		if parent == filepath.Dir(parent) {
			return dir, nil
		}
	}
}

// Cluster is one cluster of this machine, running or not.
type Cluster struct {
	// ID is unique on the machine.
	ID string
	// Cache holds the binaries, and the state of all clusters.
	Cache components.Cache
}

// Open returns the cluster of this name of this checkout.
func Open(name string) (Cluster, error) {
	checkout, err := Checkout()
	if err != nil {
		return Cluster{}, fmt.Errorf("finding the checkout: %w", err)
	}
	id, err := ID(name, checkout)
	if err != nil {
		return Cluster{}, err
	}
	dir, err := components.CacheDir()
	return Cluster{ID: id, Cache: components.Cache{Dir: dir}}, err
}

// State is the folder of everything that the cluster keeps.
func (c Cluster) State() string { return filepath.Join(c.Cache.Dir, "clusters", c.ID) }

// Kubeconfig is the administrator's. Its server is reached in the cluster's
// network namespace only.
func (c Cluster) Kubeconfig() string { return filepath.Join(c.State(), "kubeconfig", "admin.conf") }
