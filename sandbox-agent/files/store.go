package files

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/openat"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Store serves the files of one session. It is safe for concurrent use.
type Store struct {
	workspace string // absolute
	fd        int    // of it, O_PATH
	locks     locks
	sweeps    sweeps

	mu     sync.Mutex
	closed bool
	active sync.WaitGroup
}

// NewStore returns a store of files below workspace.
func NewStore(workspace string) (*Store, error) {
	absolute, err := filepath.Abs(workspace)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	fd, err := openat.Base(unix.AT_FDCWD, absolute)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	return &Store{workspace: absolute, fd: fd, sweeps: sweeps{now: time.Now, swept: map[swept]time.Time{}}}, nil
}

// ErrClosed is returned by calls that come while the agent shuts down.
var ErrClosed = errors.New("the agent is shutting down")

// Within returns what a session with these roots, absolute and cleaned, reaches.
// Done must be called on it.
func (s *Store) Within(roots []string) (*Reach, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	s.active.Add(1)
	return &Reach{store: s, roots: roots}, nil
}

// Refuse refuses calls from now on.
func (s *Store) Refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// Close waits for calls under way. The bodies of writes must have ended.
func (s *Store) Close() error {
	s.Refuse()
	s.active.Wait()
	return unix.Close(s.fd)
}

// Reach is the workspace and the roots of a session, for one call.
type Reach struct {
	store *Store
	roots []string
}

// Done ends the call.
func (r *Reach) Done() { r.store.active.Done() }

// spot is a path as text: a base (the workspace, if empty, or a root) and the
// names below it.
type spot struct {
	base  string
	names []string
}

// locate returns where an absolute, cleaned path is: below the workspace, or else
// the outermost root that holds it. A base is opened wherever it leads, and one
// within another could be made a link by who may write there: it is a mere
// directory of the other.
func (r *Reach) locate(path string) (spot, bool) {
	best, found := r.store.workspace, within(r.store.workspace, path)
	if !found {
		for _, root := range r.roots {
			if within(root, path) && (!found || len(root) < len(best)) {
				best, found = root, true
			}
		}
	}
	if !found {
		return spot{}, false
	}
	names := split(strings.TrimPrefix(path, best))
	if best == r.store.workspace {
		best = ""
	}
	return spot{best, names}, true
}

func within(base, path string) bool {
	return base == "/" || path == base || strings.HasPrefix(path, base+"/")
}

// split returns the names of a path, without those that change nothing.
func split(path string) (names []string) {
	for name := range strings.SplitSeq(path, "/") {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	return names
}

// parse returns where a caller's path is.
func (r *Reach) parse(path string) (spot, error) {
	switch {
	case path == "":
		return spot{}, refuse(ErrRequest, "the path is empty: give one relative to the workspace")
	case len(path) > wire.MaxPath:
		return spot{}, refuse(ErrRequest, "the path is longer than %d bytes", wire.MaxPath)
	case strings.ContainsRune(path, 0):
		return spot{}, refuse(ErrRequest, "the path holds a NUL")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.store.workspace, path)
	}
	at, ok := r.locate(filepath.Clean(path))
	if !ok {
		return spot{}, outside("the path")
	}
	return at, nil
}

func outside(what string) error {
	return refuse(ErrOutside, "%s leads outside the workspace and what else the file tools reach: "+
		"give one relative to the workspace; a command can use other files", what)
}

// shown is the path as callers see it, and give it: relative to the workspace,
// or absolute in a root.
func (s spot) shown(names ...string) string {
	path := strings.Join(append(append([]string{}, s.names...), names...), "/")
	switch {
	case s.base != "":
		return filepath.Join(s.base, path)
	case path == "":
		return "."
	}
	return path
}
