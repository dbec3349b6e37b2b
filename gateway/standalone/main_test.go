//go:build linux

package standalone_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// gatewayProgram is as it is shipped, and the agent beside it.
var gatewayProgram string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "berth-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func build(dir string) error {
	if err := os.Chmod(dir, 0o755); err != nil { // tests run it as another user, too
		return err
	}
	gatewayProgram = filepath.Join(dir, "berth-gateway")
	for path, what := range map[string]string{
		gatewayProgram:                    "github.com/berth-dev/berth/cmd/gateway",
		filepath.Join(dir, "berth-agent"): "github.com/berth-dev/berth/sandbox-agent",
	} {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, what)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", what, err, out)
		}
	}
	return nil
}
