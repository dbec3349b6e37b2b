package artifact

import (
	"container/list"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Clock is the time that expiry goes by.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f in its own goroutine after d, unless it was stopped.
	AfterFunc(d time.Duration, f func()) (stop func())
}

// Lifetime is how long an artifact is held.
const Lifetime = wire.ArtifactLifetimeSeconds * time.Second

// maxTurns is how many exports read much at a time: archives, and digests of large
// files. Each keeps a processor busy, and some megabytes of memory.
const maxTurns = 2

// Store holds a session's artifacts. It is safe for concurrent use.
type Store struct {
	workspace string
	root      *os.Root
	spools    []string
	clock     Clock

	patience time.Duration // for one export
	free     func(*os.File) (int64, error)
	turns    chan struct{}   // taken by exports at work on much
	closing  context.Context // done with Close
	close    context.CancelFunc
	exports  sync.WaitGroup // under way

	mu       sync.Mutex
	reserved int   // slots of exports under way
	used     int64 // bytes that copies and archives take on disk, or are about to
	writing  int64 // those of exports under way
	byID     map[string]*list.Element
	ages     list.List // of *item, oldest first: all live equally long
	held     map[string]*item
	stop     func() // of the timer for the oldest, nil when there is none
	closed   bool
	open     sync.WaitGroup // files of items
}

// item is one artifact. Its file is closed when it was dropped and no reader
// is left.
type item struct {
	wire.Artifact
	file    *os.File
	expires time.Time
	bytes   int64  // of the store's used
	stamp   *stamp // of a file that has to stay as it is
	users   int    // the store itself, and readers
	dropped func() // of one that is held
}

// NewStore returns a store of files below workspace. Copies go to the first of
// spools that takes them.
func NewStore(workspace string, spools []string, clock Clock) (*Store, error) {
	workspace = filepath.Clean(workspace)
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	s := &Store{
		workspace: workspace, root: root, spools: spools, clock: clock,
		patience: wire.ExportSeconds * time.Second, free: free, turns: make(chan struct{}, maxTurns),
		byID: map[string]*list.Element{}, held: map[string]*item{},
	}
	s.closing, s.close = context.WithCancel(context.Background())
	return s, nil
}

func newID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails (crypto/rand)
	return hex.EncodeToString(id[:])
}

// Drop forgets an artifact. It returns ErrNotFound when there is none.
func (s *Store) Drop(id string) error {
	if dropped := s.release(id); dropped != nil {
		dropped()
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	e, ok := s.byID[id]
	if !ok {
		return ErrNotFound
	}
	s.remove(e)
	return nil
}

// Close ends exports, drops all artifacts and waits until the last reader is done.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	for s.ages.Len() > 0 {
		s.remove(s.ages.Front())
	}
	for id, it := range s.held {
		delete(s.held, id)
		s.unuse(it)
	}
	s.mu.Unlock()
	s.close()
	s.exports.Wait()
	s.open.Wait()
	return s.root.Close()
}

// expire removes what is past its time. The caller holds s.mu.
func (s *Store) expire() {
	now := s.clock.Now()
	for e := s.ages.Front(); e != nil && !now.Before(e.Value.(*item).expires); e = s.ages.Front() {
		s.remove(e)
	}
}

// arm sets the one timer for the oldest artifact. The caller holds s.mu.
func (s *Store) arm() {
	if s.stop != nil || s.ages.Len() == 0 {
		return
	}
	oldest := s.ages.Front().Value.(*item)
	s.stop = s.clock.AfterFunc(oldest.expires.Sub(s.clock.Now()), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stop = nil
		s.expire()
		s.arm()
	})
}

// remove takes an artifact out. The caller holds s.mu.
func (s *Store) remove(e *list.Element) {
	it := s.ages.Remove(e).(*item)
	delete(s.byID, it.ID)
	s.unuse(it)
	if s.ages.Len() == 0 && s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

func (s *Store) unuse(it *item) {
	if it.users--; it.users == 0 {
		it.file.Close()
		s.used -= it.bytes
		s.open.Done()
	}
}
