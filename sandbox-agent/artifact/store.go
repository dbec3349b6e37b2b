package artifact

import (
	"container/list"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/filetype"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Clock is the time that expiry goes by.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f in its own goroutine after d, unless it was stopped.
	AfterFunc(d time.Duration, f func()) (stop func())
}

// Lifetime is how long an artifact is held.
const Lifetime = wire.ArtifactLifetimeSecond * time.Second

// Store holds a session's artifacts. It is safe for concurrent use.
type Store struct {
	workspace string
	root      *os.Root
	spools    []string
	clock     Clock

	mu       sync.Mutex
	reserved int // slots of exports under way
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
	return &Store{workspace: workspace, root: root, spools: spools, clock: clock, byID: map[string]*list.Element{}, held: map[string]*item{}}, nil
}

// Take exports the file at path, of at most limit bytes.
func (s *Store) Take(path string, limit int64) (wire.Artifact, error) {
	rel, err := relative(s.workspace, path)
	if err != nil {
		return wire.Artifact{}, err
	}
	if err := s.reserve(); err != nil {
		return wire.Artifact{}, err
	}
	it, err := s.take(rel, limit)
	if err != nil {
		s.unreserve()
		return wire.Artifact{}, err
	}
	return s.insert(it)
}

func (s *Store) take(rel string, limit int64) (*item, error) {
	f, info, err := open(s.root, rel)
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		f.Close()
		return nil, ErrTooLarge
	}
	it := &item{file: f}
	it.Name, it.Size = name(rel), info.Size()
	it.MIMEType, _ = filetype.Of(rel, f)
	if it.Size > wire.CopiedArtifact {
		return it, nil
	}
	defer f.Close()
	it.file, it.Size, it.SHA256, err = copyOf(f, s.spools, min(limit, wire.CopiedArtifact))
	return it, err
}

func (s *Store) reserve() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	switch {
	case s.closed:
		return ErrClosed
	case s.ages.Len()+s.reserved >= wire.MaxArtifacts:
		return ErrTooMany
	}
	s.reserved++
	return nil
}

func (s *Store) unreserve() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved--
}

func newID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails (crypto/rand)
	return hex.EncodeToString(id[:])
}

func (s *Store) insert(it *item) (wire.Artifact, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved--
	if s.closed {
		it.file.Close()
		return wire.Artifact{}, ErrClosed
	}
	it.ID, it.users = newID(), 1
	it.expires = s.clock.Now().Add(Lifetime)
	it.ExpiresIn = wire.ArtifactLifetimeSecond
	s.byID[it.ID] = s.ages.PushBack(it)
	s.open.Add(1)
	s.arm()
	return it.Artifact, nil
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

// Close drops all artifacts and waits until the last reader is done.
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
		s.open.Done()
	}
}
