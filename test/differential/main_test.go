package differential

import (
	"fmt"
	"os"
	"testing"
)

// buildDir is where the agent is built.
var buildDir string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if buildDir, err = os.MkdirTemp("", "berth-differential-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(buildDir)
	return m.Run()
}
