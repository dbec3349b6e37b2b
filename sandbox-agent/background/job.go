package background

import (
	"io"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Leftover lists what a command left behind, and keeps what is written to the
// result. It returns nil when there is no room.
func (r *Registry) Leftover(command string) io.WriteCloser {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || !r.room(false) {
		return nil
	}
	e := newEntry(newID(wire.KindJob), wire.KindJob, command, r.config.Spools)
	r.entries = append(r.entries, e)
	return job{e, r}
}

type job struct {
	*entry
	registry *Registry
}

// Write never fails: output for which there is no room is dropped.
func (j job) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ring.write(p)
	j.tell()
	return len(p), nil
}

// Close notes that nobody writes any more. Where nobody ever did, there is
// nothing to list: a child may have let go of its output just after the command's
// end.
func (j job) Close() error {
	j.end(nil, false)
	j.registry.noteEnd()
	if p := j.view(); p.OutputEnd == 0 && p.Notice == "" {
		j.registry.forget(j.entry)
	}
	return nil
}
