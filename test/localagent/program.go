package localagent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// buildDir is where Program builds.
var buildDir string

// Main runs a package's tests, and removes afterwards what Program built for
// them. TestMain calls it.
func Main(tests interface{ Run() int }) (code int) {
	if program := os.Getenv(refuseLinks); program != "" {
		fmt.Fprintln(os.Stderr, becomeWithoutLinks(program))
		return 1
	}
	var err error
	if buildDir, err = os.MkdirTemp("", "berth-agent-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(buildDir)
	return tests.Run()
}

// Program builds the agent as it is shipped, once, and returns its path.
var Program = sync.OnceValues(func() (path string, err error) {
	if buildDir == "" {
		return "", fmt.Errorf("the tests of this package are not run by localagent.Main")
	}
	path = filepath.Join(buildDir, "berth-agent")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "github.com/berth-dev/berth/sandbox-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the agent: %w: %s", err, out)
	}
	return path, nil
})
