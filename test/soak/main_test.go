package soak

import (
	"flag"
	"os"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/test/localagent"
)

var (
	commands  = flag.Int("commands", 300, "how many mixed commands")
	gigabytes = flag.Int("gigabytes", 1, "how much output a command writes")
)

func TestMain(m *testing.M) { os.Exit(localagent.Main(m)) }

// logBytes bounds the logs of an agent here.
const logBytes = 32 << 20

// soaked is an agent under test.
type soaked struct {
	*localagent.Agent
	workspace string
}

func start(t *testing.T) *soaked {
	t.Helper()
	s := &soaked{workspace: t.TempDir()}
	o := localagent.Options{Workspace: s.workspace, Limits: client.Limits{LogBytes: logBytes},
		Environ: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + s.workspace}}
	var err error
	if s.Agent, err = localagent.Start(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}
