package serve

import (
	"errors"
	"log/slog"

	"github.com/berth-dev/berth/sandbox-agent/memory"
	"github.com/berth-dev/berth/sandbox-agent/shell"
)

// watchMemory returns nil where out-of-memory kills can't be seen: results won't
// name them then.
func watchMemory(log *slog.Logger) *memory.Watch {
	watch, err := memory.Open()
	if err != nil {
		log.Info("Out-of-memory kills can't be seen", "reason", err)
		return nil
	}
	return watch
}

// guardMemory kills the biggest process before the kernel kills the container,
// where it would, until stop is called.
func guardMemory(log *slog.Logger, watch *memory.Watch, sh *shell.Shell) (stop func()) {
	if watch == nil {
		return func() {}
	}
	stop, err := watch.Guard(sh.KillBiggest)
	if err == nil {
		return stop
	}
	if !errors.Is(err, memory.ErrNotNeeded) {
		log.Info("The container is killed when its memory runs out", "reason", err)
	}
	return func() {}
}
