// Package debian installs what the cluster needs of the system, where the system
// is Debian or one like it.
package debian

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Programs maps each program of the system that may be needed to the package that
// has it.
var Programs = map[string]string{
	"ipset":    "ipset",
	"iptables": "iptables",
	"modprobe": "kmod",
	"mount":    "mount",
	"nft":      "nftables",
}

// lockWait is how many seconds apt-get may wait for another apt-get.
const lockWait = "300"

// EnsurePrograms installs the packages of the programs that aren't there.
func EnsurePrograms(ctx context.Context, progress io.Writer, programs ...string) error {
	var missing []string
	for _, program := range programs {
		if !hasProgram(program) {
			missing = append(missing, Programs[program])
		}
	}
	return install(ctx, progress, missing)
}

// EnsurePackages installs the packages that aren't there. Where there is no
// Debian, it leaves it to whoever needs them to fail.
func EnsurePackages(ctx context.Context, progress io.Writer, packages ...string) error {
	if !hasProgram("dpkg-query") {
		return nil
	}
	var missing []string
	for _, name := range packages {
		status, err := exec.CommandContext(ctx, "dpkg-query", "--show", "--showformat=${db:Status-Abbrev}", name).Output()
		if err != nil || !strings.HasPrefix(string(status), "ii") { // it fails for a name that it never saw
			missing = append(missing, name)
		}
	}
	return install(ctx, progress, missing)
}

func hasProgram(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// install installs packages without asking.
func install(ctx context.Context, progress io.Writer, packages []string) error {
	if len(packages) == 0 {
		return nil
	}
	slices.Sort(packages)
	list := strings.Join(packages, " ")
	if !hasProgram("apt-get") {
		return fmt.Errorf("missing what Debian calls %s: install it as this system does", list)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("missing packages: `sudo apt-get install %s` adds them", list)
	}
	fmt.Fprintf(progress, "Installing Debian packages: %s\n", list)
	for _, args := range [][]string{{"update"}, append([]string{"install", "--yes", "--no-install-recommends"}, packages...)} {
		cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-o", "DPkg::Lock::Timeout=" + lockWait}, args...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}
