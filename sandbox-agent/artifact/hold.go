package artifact

import (
	"os"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Hold makes a file that someone else keeps readable as an artifact, until
// expires or Release. It takes none of the places that Take has. The store
// closes file. dropped is called when a caller drops the artifact; it may call
// the store.
func (s *Store) Hold(a wire.Artifact, file *os.File, expires time.Time, dropped func()) (id string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		file.Close()
		return "", ErrClosed
	}
	it := &item{Artifact: a, file: file, expires: expires, users: 1, dropped: dropped}
	it.ID = newID()
	s.held[it.ID] = it
	s.open.Add(1)
	return it.ID, nil
}

// Release lets go of a file that is held. A read under way goes on.
func (s *Store) Release(id string) { s.release(id) }

func (s *Store) release(id string) (dropped func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it, ok := s.held[id]
	if !ok {
		return nil
	}
	delete(s.held, id)
	s.unuse(it)
	return it.dropped
}

// find returns the artifact with this id, or nil. The caller holds s.mu and has
// let expire what is past its time.
func (s *Store) find(id string) *item {
	it := s.held[id]
	if e, ok := s.byID[id]; ok {
		it = e.Value.(*item)
	}
	if it == nil || !s.clock.Now().Before(it.expires) {
		return nil
	}
	return it
}
