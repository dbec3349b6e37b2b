package serve

import (
	"context"

	"github.com/berth-dev/berth/sandbox-agent/background"
	"github.com/berth-dev/berth/sandbox-agent/shell"
	"github.com/berth-dev/berth/sandbox-agent/supervise"
)

// newShell starts a shell, and what starts background processes where it is, all on
// processors only, unless there are none.
func newShell(c shell.Config, spools []string, processors []int) (sh *shell.Shell, processes *background.Registry, supervisor *supervise.Supervisor) {
	supervisor = supervise.New(c.Reaper, processors)
	processes = background.New(background.Config{
		Launch: func(ctx context.Context, command shell.Command, start func(shell.Launch) error) error {
			return sh.Launch(ctx, command, start)
		},
		Settled:    func(ctx context.Context) error { return sh.Settled(ctx) },
		Supervisor: supervisor,
		Spools:     spools,
	})
	c.Supervisor, c.Leftovers = supervisor.PID, processes.Leftover
	sh = shell.New(c)
	return sh, processes, supervisor
}
