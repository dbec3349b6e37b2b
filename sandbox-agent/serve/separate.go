package serve

import (
	"log/slog"

	"github.com/berth-dev/berth/sandbox-agent/affinity"
	"github.com/berth-dev/berth/sandbox-agent/process"
)

// separate gives the agent processors of its own, where some are left over, and
// returns those of what the session runs: none where they share all.
func separate(log *slog.Logger, r *process.Reaper) []int {
	processors, err := affinity.Separate()
	if err != nil {
		log.Info("The session has the agent's processors, too", "reason", err)
		return nil
	}
	r.Confine(affinity.Set(processors))
	return processors
}
