package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// ensureTools installs what a root is made with, or says what is missing.
func ensureTools(ctx context.Context, log io.Writer) error {
	var missing []string
	if _, err := exec.LookPath("mmdebstrap"); err != nil {
		missing = append(missing, "mmdebstrap")
	}
	if _, err := os.Stat(keyring); err != nil {
		missing = append(missing, "debian-archive-keyring")
	}
	root := os.Geteuid() == 0
	if _, err := exec.LookPath("newuidmap"); err != nil && !root {
		missing = append(missing, "uidmap")
	}
	if len(missing) == 0 {
		return nil
	}
	packages := strings.Join(missing, " ")
	_, noApt := exec.LookPath("apt-get")
	if noApt != nil || !root {
		return fmt.Errorf("missing %s: run `apt-get install %s` as root on Debian or Ubuntu, or build the Dockerfile's target with a container engine", packages, packages)
	}
	fmt.Fprintf(log, "Installing %s\n", packages)
	install := append([]string{"install", "-y", "--no-install-recommends"}, missing...)
	if first := aptGet(ctx, install...); first != nil {
		// The package lists of a fresh machine are empty or old.
		if err := aptGet(ctx, "update"); err != nil {
			return errors.Join(first, err)
		}
		return aptGet(ctx, install...)
	}
	return nil
}

func aptGet(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-o", "DPkg::Lock::Timeout=300"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("apt-get %s: %w; it said:\n%s", strings.Join(args, " "), err, said.String())
	}
	return nil
}
