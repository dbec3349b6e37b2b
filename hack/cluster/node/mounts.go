package node

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// kubeletRoot is kubelet's default: a part of it can't be set.
const kubeletRoot = "/var/lib/kubelet"

// privateFolders maps folders that a daemon insists on to the node's own, which
// are mounted over them, so that two nodes never share one.
func privateFolders(s Spec) map[string]string {
	return map[string]string{
		"/var/log":     s.File("log"),     // kubelet: /var/log/pods, /var/log/containers
		kubeletRoot:    s.File("kubelet"), // kubelet: device-plugins
		"/var/lib/cni": s.File("cni-cache"),
	}
}

// setUpMounts makes the node's view of the file system, in a mount namespace that
// is the node's own: nothing of it is seen outside, and all of it goes with the
// last process of the node. What the machine mounts later is seen inside.
func setUpMounts(s Spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("parting the node's mounts from the machine's: %w", err)
	}
	// Shared among the node's own namespaces: pods may ask for propagation.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing mounts within the node: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc of the node: %w", err)
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mounting /run of the node: %w", err)
	}
	for target, source := range privateFolders(s) {
		for _, dir := range []string{target, source} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
		if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting %s over %s: %w", source, target, err)
		}
	}
	return tryOverlay(s.File("overlay-test"))
}

// tryOverlay mounts an overlay as containerd will for each container: in a
// folder that itself lies on an overlay it doesn't work, and containerd's own
// message would come late.
func tryOverlay(dir string) error {
	for _, layer := range []string{"lower", "upper", "work", "merged"} {
		if err := os.MkdirAll(dir+"/"+layer, 0o755); err != nil {
			return err
		}
	}
	options := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", dir)
	if err := unix.Mount("overlay", dir+"/merged", "overlay", 0, options); err != nil {
		return fmt.Errorf("overlayfs doesn't work in %s: set BERTH_CACHE to a folder on a file system such as ext4 or xfs: %w", dir, err)
	}
	if err := unix.Unmount(dir+"/merged", 0); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
