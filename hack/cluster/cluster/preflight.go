package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/berth-dev/berth/hack/cluster/components"
)

// programs maps each program of the system that a cluster needs to the Debian
// package that has it.
func programs(o Options) map[string]string {
	needed := map[string]string{"nft": "nftables", "mount": "mount"}
	if o.NetworkPolicy {
		needed["iptables"] = "iptables"
		needed["ipset"] = "ipset"
	}
	return needed
}

// preflight makes sure that the machine has what a cluster needs, and installs
// what is missing of Debian's packages.
func preflight(ctx context.Context, o Options, missing []components.Component, progress io.Writer) error {
	if os.Geteuid() != 0 {
		return errors.New("a cluster makes namespaces and cgroups, which needs root: run it with `sudo -E`")
	}
	if _, err := os.Stat("/proc/self/ns/net"); err != nil {
		return fmt.Errorf("the kernel has no network namespaces (CONFIG_NET_NS): %w", err)
	}
	filesystems, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Fields(string(filesystems)), "overlay") {
		// It may be a module that isn't loaded yet.
		if err := exec.CommandContext(ctx, "modprobe", "overlay").Run(); err != nil {
			return fmt.Errorf("the kernel has no overlayfs (CONFIG_OVERLAY_FS), and `modprobe overlay` failed: %w", err)
		}
	}
	return installPackages(ctx, packagesFor(o, missing), progress)
}

// packagesFor lists the Debian packages that aren't there, sorted. A component
// that is in the cache needs no compiler.
func packagesFor(o Options, missing []components.Component) []string {
	var packages []string
	for program, name := range programs(o) {
		if _, err := exec.LookPath(program); err != nil {
			packages = append(packages, name)
		}
	}
	for _, c := range missing {
		for _, name := range c.DebianBuild {
			// -s fails for a package that isn't installed, and without dpkg.
			if err := exec.Command("dpkg", "-s", name).Run(); err != nil {
				packages = append(packages, name)
			}
		}
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

// installPackages installs Debian packages without asking.
func installPackages(ctx context.Context, packages []string, progress io.Writer) error {
	if len(packages) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("install what Debian calls %s: this machine has no apt-get to do it with", strings.Join(packages, ", "))
	}
	fmt.Fprintf(progress, "Installing Debian packages: %s\n", strings.Join(packages, " "))
	install := append([]string{"install", "--yes", "--no-install-recommends"}, packages...)
	for _, args := range [][]string{{"update"}, install} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}
