package background

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/supervise"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// A process that has ended is listed as running until its last output is there.
func TestSignalToOneThatJustEnded(t *testing.T) {
	r := fixture(t)
	e := newEntry("p", wire.KindProcess, "true", r.config.Spools)
	e.process = &supervise.Process{} // of no process any more
	r.entries = append(r.entries, e)
	if err := r.Signal(t.Context(), e.id, unix.SIGTERM); !errors.Is(err, ErrNotRunning) {
		t.Errorf("got %v", err)
	}
}
