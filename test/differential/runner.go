package differential

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/test/localagent"
)

// Runner runs scripts on both sides. It may be used by many at a time.
type Runner struct {
	Dir  string   // an existing directory
	Hide []string // files that the agents find empty, such as a bash
}

// noReference begins what is said of a script that a plain shell doesn't run to
// its end.
const noReference = "the reference: "

// Run runs s on both sides and returns what differs. What hinders that is a
// difference too, such as a notice of the session.
func (r Runner) Run(ctx context.Context, s Script) (difference string) {
	dir, err := os.MkdirTemp(r.Dir, "")
	if err != nil {
		return err.Error()
	}
	defer os.RemoveAll(dir)
	// One path for both, one after the other: scripts cut paths, match them and
	// change their case.
	work, over := filepath.Join(dir, "work"), filepath.Join(dir, "over")
	notes, gatePath := filepath.Join(dir, "notes"), filepath.Join(dir, "gate")
	if err := errors.Join(os.Mkdir(work, 0o755), os.Mkdir(notes, 0o755), unix.Mkfifo(gatePath, 0o600)); err != nil {
		return err.Error()
	}
	want, err := Reference(ctx, s, work, notes)
	if err != nil {
		return noReference + err.Error()
	}
	if err := errors.Join(os.Rename(work, over), os.Mkdir(work, 0o755)); err != nil {
		return err.Error()
	}
	agent, err := localagent.Start(ctx, localagent.Options{Workspace: work, Environ: environ(s.Path, work), Hide: r.Hide})
	if err != nil {
		return err.Error()
	}
	defer agent.Stop()
	got, err := Session(ctx, s, agent, work, gatePath)
	if err != nil {
		return "the session: " + err.Error()
	}
	return Difference(s, want, got)
}

// Explain shrinks a script that differs and says all that helps to see why.
func (r Runner) Explain(ctx context.Context, s Script, difference string) string {
	const tries = 100
	if strings.HasPrefix(difference, noReference) {
		return difference // which shows all of the script
	}
	// With less of it a script may end too early in any shell, by a set -e for one.
	small := Shrink(s, func(s Script) bool {
		d := r.Run(ctx, s)
		return d != "" && !strings.HasPrefix(d, noReference)
	}, tries)
	again := r.Run(ctx, small)
	if again == "" {
		return fmt.Sprintf("seed %d, not every time: %s\n%s", s.Seed, difference, s)
	}
	return fmt.Sprintf("seed %d: %s\n%s", s.Seed, again, small)
}
