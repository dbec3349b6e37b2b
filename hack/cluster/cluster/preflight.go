package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-dev/berth/hack/cluster/debian"
)

// preflight makes sure that the machine has what a cluster needs. What can only
// be tried, such as an overlay in the state folder, the node itself tries.
func (c Cluster) preflight(ctx context.Context, o Options, progress io.Writer) error {
	if os.Geteuid() != 0 {
		return errors.New("a cluster makes namespaces and cgroups, which needs root: run it with `sudo -E`")
	}
	for _, kind := range []string{"ipc", "mnt", "net", "pid", "uts"} {
		if _, err := os.Stat("/proc/self/ns/" + kind); err != nil {
			return fmt.Errorf("the kernel has no namespaces of kind %s, see namespaces(7): %w", kind, err)
		}
	}
	for _, hidden := range []string{"/run", "/var/log", "/var/lib/kubelet", "/var/lib/cni"} {
		if within, err := filepath.Rel(hidden, c.Cache.Dir); err == nil && filepath.IsLocal(within) {
			return fmt.Errorf("the cache %s is in %s, which a node has a %s of its own in place of: set BERTH_CACHE to another folder", c.Cache.Dir, hidden, hidden)
		}
	}
	programs := []string{"nft", "mount"}
	if o.NetworkPolicy {
		programs = append(programs, "iptables", "ipset")
	}
	if err := debian.EnsurePrograms(ctx, progress, programs...); err != nil {
		return err
	}
	return ensureOverlay(ctx, progress)
}

// ensureOverlay loads overlayfs where it's a module.
func ensureOverlay(ctx context.Context, progress io.Writer) error {
	filesystems, err := os.ReadFile("/proc/filesystems")
	if err != nil || slices.Contains(strings.Fields(string(filesystems)), "overlay") {
		return err
	}
	if err := debian.EnsurePrograms(ctx, progress, "modprobe"); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "modprobe", "overlay").CombinedOutput(); err != nil {
		return fmt.Errorf("the kernel has no overlayfs (CONFIG_OVERLAY_FS), and `modprobe overlay` failed: %w\n%s", err, out)
	}
	return nil
}
