package execlog

import (
	"container/list"
	"os"
	"sync"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/artifact"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Lifetime is how long a log is kept after its command's end.
const Lifetime = wire.LogLifetimeSeconds * time.Second

// maxLogs is how many logs are kept: each has a descriptor open.
const maxLogs = 128

// Shelf is where finished logs can be read; *artifact.Store is one.
type Shelf interface {
	Hold(a wire.Artifact, file *os.File, expires time.Time, dropped func()) (id string, err error)
	Release(id string)
}

// Store keeps a session's logs. It is safe for concurrent use.
type Store struct {
	dir     directory
	shelf   Shelf
	clock   artifact.Clock
	cleared chan struct{} // closed when left-overs are gone

	mu   sync.Mutex
	used int64     // bytes of all logs
	ages list.List // of *Log that are finished, oldest first: all live equally long
	stop func()    // of the timer for the oldest, nil when there is none
}

// New returns a store of logs below workspace, and begins to remove those of a
// store before it.
func New(workspace string, shelf Shelf, clock artifact.Clock) (*Store, error) {
	dir, err := openDirectory(workspace)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, shelf: shelf, clock: clock, cleared: make(chan struct{})}
	go func() {
		defer close(s.cleared)
		dir.clear()
	}()
	return s, nil
}

// reserve returns how many of want bytes a log may take now, of limit for all
// logs together. The oldest finished logs make room.
func (s *Store) reserve(want, limit int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.used+want > limit && s.ages.Len() > 0 {
		s.remove(s.ages.Front())
	}
	got := max(0, min(want, limit-s.used))
	s.used += got
	return got
}

func (s *Store) unreserve(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= n
}

// finish begins a log's life as an artifact.
func (s *Store) finish(l *Log) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := wire.Artifact{Name: l.name, MIMEType: "text/plain", Size: l.size}
	l.expires = s.clock.Now().Add(Lifetime)
	var err error
	if l.id, err = s.shelf.Hold(a, l.file, l.expires, func() { s.drop(l) }); err != nil {
		return err
	}
	l.place = s.ages.PushBack(l)
	for s.ages.Len() > maxLogs {
		s.remove(s.ages.Front())
	}
	s.arm()
	return nil
}

// drop removes a log that its caller no longer wants.
func (s *Store) drop(l *Log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.place != nil {
		s.remove(l.place)
	}
}

// remove takes a log out. The caller holds s.mu.
func (s *Store) remove(e *list.Element) {
	l := s.ages.Remove(e).(*Log)
	l.place = nil
	s.used -= l.size
	s.shelf.Release(l.id)
	s.dir.remove(l.name, l.made)
	if s.ages.Len() == 0 && s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

// arm sets the one timer for the oldest log. The caller holds s.mu.
func (s *Store) arm() {
	if s.stop != nil || s.ages.Len() == 0 {
		return
	}
	oldest := s.ages.Front().Value.(*Log)
	s.stop = s.clock.AfterFunc(oldest.expires.Sub(s.clock.Now()), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stop = nil
		now := s.clock.Now()
		for e := s.ages.Front(); e != nil && !now.Before(e.Value.(*Log).expires); e = s.ages.Front() {
			s.remove(e)
		}
		s.arm()
	})
}
