package differential

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/test/localagent"
)

// Runner runs scripts on both sides. It may be used by many at a time.
type Runner struct {
	Dir  string   // an existing directory
	Hide []string // files that the agents find empty, such as a bash
}

// Run runs s on both sides and returns what differs. What hinders that is a
// difference too, such as a notice of the session.
func (r Runner) Run(ctx context.Context, s Script) (difference string) {
	dir, err := os.MkdirTemp(r.Dir, "")
	if err != nil {
		return err.Error()
	}
	defer os.RemoveAll(dir)
	// Equally long names, since scripts measure and cut paths; digits, since they
	// change the case of letters.
	session, plain := filepath.Join(dir, "1", "work"), filepath.Join(dir, "2", "work")
	notes, gatePath := filepath.Join(dir, "notes"), filepath.Join(dir, "gate")
	err = errors.Join(os.MkdirAll(session, 0o755), os.MkdirAll(plain, 0o755), os.Mkdir(notes, 0o755), unix.Mkfifo(gatePath, 0o600))
	if err != nil {
		return err.Error()
	}
	agent, err := localagent.Start(ctx, localagent.Options{Workspace: session, Environ: environ(s.Path, session), Hide: r.Hide})
	if err != nil {
		return err.Error()
	}
	defer agent.Stop()
	want, err := Reference(ctx, s, plain, notes)
	if err != nil {
		return "the reference: " + err.Error()
	}
	got, err := Session(ctx, s, agent, session, gatePath)
	if err != nil {
		return "the session: " + err.Error()
	}
	return Difference(s, want, got)
}

// Explain shrinks a script that differs and says all that helps to see why.
func (r Runner) Explain(ctx context.Context, s Script, difference string) string {
	const tries = 100
	small := Shrink(s, func(s Script) bool { return r.Run(ctx, s) != "" }, tries)
	again := r.Run(ctx, small)
	if again == "" {
		return fmt.Sprintf("seed %d, not every time: %s\n%s", s.Seed, difference, s)
	}
	return fmt.Sprintf("seed %d: %s\n%s", s.Seed, again, small)
}
