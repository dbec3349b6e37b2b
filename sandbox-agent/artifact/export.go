package artifact

import (
	"math"
	"os"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// export is one under way. It holds a slot, and the bytes that it takes on disk,
// until it is an item or ends.
type export struct {
	store *Store
	total int64 // what all may take
	bytes int64 // what this one may take of it by now
}

// begin reserves a slot.
func (s *Store) begin(total int64) (*export, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	switch {
	case s.closed:
		return nil, ErrClosed
	case s.ages.Len()+s.reserved >= wire.MaxArtifacts:
		return nil, ErrTooMany
	}
	s.reserved++
	s.exports.Add(1)
	return &export{store: s, total: total}, nil
}

// reserve lets an export write n more bytes to f. Held artifacts and exports
// under way stay within the total, and those under way leave at least half of
// what is free on the disk to others.
func (e *export) reserve(n int64, f *os.File) error {
	s := e.store
	free, err := s.free(f)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	switch {
	case n > e.total-e.bytes:
		return ErrTotal
	case n > e.total-s.used:
		return ErrTooMuch
	case n > free/2-s.writing:
		return ErrNoSpace
	}
	e.bytes += n
	s.used += n
	s.writing += n
	return nil
}

// release gives the bytes back.
func (e *export) release() {
	e.store.mu.Lock()
	defer e.store.mu.Unlock()
	e.store.used -= e.bytes
	e.store.writing -= e.bytes
	e.bytes = 0
}

// end gives up: slot and bytes are free again.
func (e *export) end() {
	e.release()
	e.store.mu.Lock()
	defer e.store.mu.Unlock()
	e.store.reserved--
	e.store.exports.Done()
}

// insert makes an artifact of what was taken.
func (e *export) insert(it *item) (wire.Artifact, error) {
	s := e.store
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.exports.Done()
	s.reserved--
	s.writing -= e.bytes
	if s.closed {
		it.file.Close()
		s.used -= e.bytes
		return wire.Artifact{}, ErrClosed
	}
	it.ID, it.users, it.bytes = newID(), 1, e.bytes
	it.expires = s.clock.Now().Add(Lifetime)
	it.ExpiresIn = wire.ArtifactLifetimeSeconds
	s.byID[it.ID] = s.ages.PushBack(it)
	s.open.Add(1)
	s.arm()
	return it.Artifact, nil
}

// free is how much an unprivileged process may still write where f is.
func free(f *os.File) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil {
		return 0, spaceError(err)
	}
	if fs.Bavail > uint64(math.MaxInt64/fs.Bsize) {
		return math.MaxInt64, nil
	}
	return int64(fs.Bavail) * fs.Bsize, nil
}
