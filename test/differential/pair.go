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

// Pair is an agent, and directories for it and for the reference.
type Pair struct {
	agent         *localagent.Agent
	dir           string
	session, bash string // working directories
	notes, gate   string
}

// NewPair starts program in dir, which must be empty.
func NewPair(ctx context.Context, program, dir string) (*Pair, error) {
	// Equally long names, since scripts measure and cut paths; digits, since they
	// change the case of letters.
	p := &Pair{dir: dir, session: filepath.Join(dir, "1", "work"), bash: filepath.Join(dir, "2", "work"),
		notes: filepath.Join(dir, "notes"), gate: filepath.Join(dir, "gate")}
	err := errors.Join(os.MkdirAll(p.session, 0o755), unix.Mkfifo(p.gate, 0o600))
	if err != nil {
		return nil, err
	}
	p.agent, err = localagent.Start(ctx, localagent.Options{Program: program, Workspace: p.session, Environ: Environ(p.session)})
	return p, err
}

// Close ends the agent.
func (p *Pair) Close() { p.agent.Stop() }

// Run runs s on both sides and returns what differs. What hinders that is a
// difference too, such as a notice of the session.
func (p *Pair) Run(ctx context.Context, s Script) (difference string) {
	if err := p.reset(ctx); err != nil {
		return err.Error()
	}
	want, err := Reference(ctx, s, p.bash, p.notes)
	if err != nil {
		return "the reference: " + err.Error()
	}
	got, err := Session(ctx, s, p.agent, p.session, p.gate)
	if err != nil {
		return "the session: " + err.Error()
	}
	return Difference(want, got)
}

// reset gives both sides a new shell in an empty directory.
func (p *Pair) reset(ctx context.Context) error {
	for _, dir := range []string{p.bash, p.notes} {
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
			return err
		}
	}
	if err := Renew(ctx, p.agent); err != nil {
		return err
	}
	entries, err := os.ReadDir(p.session)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(p.session, entry.Name())))
	}
	return err
}

// Explain shrinks a script that differs and says all that helps to see why.
func (p *Pair) Explain(ctx context.Context, s Script, difference string) string {
	const tries = 150
	small := Shrink(s, func(s Script) bool { return p.Run(ctx, s) != "" }, tries)
	again := p.Run(ctx, small)
	if again == "" {
		return fmt.Sprintf("seed %d, not every time: %s\n%s", s.Seed, difference, s)
	}
	return fmt.Sprintf("seed %d: %s\n%s", s.Seed, again, small)
}
