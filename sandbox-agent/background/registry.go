package background

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/shell"
	"github.com/berth-dev/berth/sandbox-agent/supervise"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Config says how processes are started and where their output goes.
type Config struct {
	// Launch is that of the session's shell.
	Launch func(ctx context.Context, c shell.Command, start func(shell.Launch) error) error
	// Settled waits until what the last command left behind is known.
	Settled func(ctx context.Context) error
	// Supervisor starts them.
	Supervisor *supervise.Supervisor
	// Spools are directories for their output, tried in order.
	Spools []string
}

// Registry knows a session's processes. It is safe for concurrent use.
type Registry struct {
	config Config

	mu       sync.Mutex
	entries  []*entry                 // the oldest first
	starting map[string]chan struct{} // by id; closed when it was tried
	ended    time.Time                // when the last one ended
	closing  chan struct{}            // closed when the agent is about to end
	closed   bool
}

// New returns a registry without processes.
func New(config Config) *Registry {
	return &Registry{config: config, starting: map[string]chan struct{}{}, closing: make(chan struct{})}
}

// Activity is how many run, jobs included, and when the last of those that
// ended did.
func (r *Registry) Activity() (running int, ended time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entries {
		if e.running.Load() {
			running++
		}
	}
	return running, r.ended
}

// List describes all, the oldest first. Its error is ctx's.
func (r *Registry) List(ctx context.Context) ([]wire.Process, error) {
	if err := r.config.Settled(ctx); err != nil {
		return nil, err
	}
	r.mu.Lock()
	entries := slices.Clone(r.entries)
	r.mu.Unlock()
	all := make([]wire.Process, 0, len(entries))
	for _, e := range entries {
		all = append(all, e.view())
	}
	return all, nil
}

// Get describes one. It returns ErrNotFound when there is none.
func (r *Registry) Get(id string) (wire.Process, error) {
	e, err := r.find(id)
	if err != nil {
		return wire.Process{}, err
	}
	return e.view(), nil
}

func (r *Registry) find(id string) (*entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := r.index(id); i >= 0 {
		return r.entries[i], nil
	}
	return nil, ErrNotFound
}

// index is where the entry with an id is, or negative. The caller holds r.mu.
func (r *Registry) index(id string) int {
	return slices.IndexFunc(r.entries, func(e *entry) bool { return e.id == id })
}

// reserve takes a place for a process that is to start. When there is one with
// that id already it returns that, or what is closed when its start was tried.
func (r *Registry) reserve(id string, digest [sha256.Size]byte) (*entry, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, ErrClosed
	}
	if i := r.index(id); i >= 0 {
		if e := r.entries[i]; e.kind == wire.KindProcess && e.digest == digest {
			return e, nil, nil
		}
		return nil, nil, ErrIDInUse
	}
	if tried, ok := r.starting[id]; ok {
		return nil, tried, nil
	}
	running := 0
	for _, e := range r.entries {
		if e.kind == wire.KindProcess && e.running.Load() {
			running++
		}
	}
	if running+len(r.starting) >= wire.MaxProcesses {
		return nil, nil, ErrTooMany
	}
	r.starting[id] = make(chan struct{})
	return nil, nil, nil
}

// release gives a place back, to e unless it is nil.
func (r *Registry) release(id string, e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.starting[id])
	delete(r.starting, id)
	if e != nil {
		r.room(true)
		r.entries = append(r.entries, e)
	}
}

// room makes room for one more: the oldest that has ended goes, then, if jobs
// may, the oldest job. It returns whether there is some. The caller holds r.mu.
func (r *Registry) room(jobs bool) bool {
	if len(r.entries) < wire.MaxProcesses {
		return true
	}
	i := slices.IndexFunc(r.entries, func(e *entry) bool { return !e.running.Load() })
	if i < 0 && jobs {
		i = slices.IndexFunc(r.entries, func(e *entry) bool { return e.kind == wire.KindJob })
	}
	if i < 0 {
		return false
	}
	r.entries[i].close()
	r.entries = slices.Delete(r.entries, i, i+1)
	return true
}

// forget takes an entry out.
func (r *Registry) forget(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.entries, e); i >= 0 {
		r.entries = slices.Delete(r.entries, i, i+1)
		e.close()
	}
}

// newID returns one that nobody else chooses.
func newID(kind string) string { return kind + "-" + strings.ToLower(rand.Text()[:12]) }

// noteEnd keeps the time for Activity.
func (r *Registry) noteEnd() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = time.Now()
}

// End starts no more, lets nobody wait any longer, and asks all processes to
// end. It waits until they have, or ctx ends.
func (r *Registry) End(ctx context.Context) {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.closing)
	}
	all := slices.Clone(r.entries)
	r.mu.Unlock()
	for _, e := range all {
		if e.process == nil {
			continue
		}
		signals := []unix.Signal{unix.SIGTERM, unix.SIGCONT}
		if e.terminal { // an interactive shell ignores TERM
			signals = append(signals, unix.SIGHUP)
		}
		for _, sig := range signals {
			_ = e.process.SignalGroup(sig) // whoever doesn't take it is killed with the rest
		}
	}
	for _, e := range all {
		if e.process == nil {
			continue
		}
		select {
		case <-e.done:
		case <-ctx.Done():
			return
		}
	}
}

// Close lets go of all. Their processes must have ended.
func (r *Registry) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entries {
		e.close()
	}
	r.entries = nil
}
