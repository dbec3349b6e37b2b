package soak

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/test/localagent"
)

var (
	commands  = flag.Int("commands", 300, "how many mixed commands")
	gigabytes = flag.Int("gigabytes", 1, "how much output a command writes")
	program   = flag.String("agent", "", "an agent that was built before")
)

// buildDir is where the agent is built.
var buildDir string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if buildDir, err = os.MkdirTemp("", "berth-soak-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(buildDir)
	return m.Run()
}

var build = sync.OnceValues(func() (string, error) { return localagent.Build(buildDir) })

// logBytes bounds the logs of an agent here.
const logBytes = 32 << 20

// soaked is an agent under test.
type soaked struct {
	*localagent.Agent
	workspace string
}

func start(t *testing.T) *soaked {
	t.Helper()
	path := *program
	if path == "" {
		var err error
		if path, err = build(); err != nil {
			t.Fatal(err)
		}
	}
	s := &soaked{workspace: t.TempDir()}
	o := localagent.Options{Program: path, Workspace: s.workspace, Limits: client.Limits{LogBytes: logBytes},
		Environ: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + s.workspace}}
	var err error
	if s.Agent, err = localagent.Start(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}
