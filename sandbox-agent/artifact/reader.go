package artifact

import (
	"errors"
	"io"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// ErrShrunk is returned by a read of a pinned file that has lost bytes since.
var ErrShrunk = errors.New("the file has shrunk since it was exported")

// Reader reads one artifact. It stays readable until it is closed, also when
// the artifact expires or is dropped meanwhile.
type Reader struct {
	wire.Artifact
	*io.SectionReader
	store *Store
	item  *item
}

// Open returns a reader of an artifact. It returns ErrNotFound when there is
// none (any more), ErrShrunk when its bytes are no longer all there.
func (s *Store) Open(id string) (*Reader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	it := s.find(id)
	if it == nil {
		return nil, ErrNotFound
	}
	if info, err := it.file.Stat(); err != nil || info.Size() < it.Size {
		return nil, ErrShrunk
	}
	it.users++
	r := &Reader{Artifact: it.Artifact, store: s, item: it}
	r.SectionReader = io.NewSectionReader(it.file, 0, it.Size)
	r.ExpiresIn = int(it.expires.Sub(s.clock.Now()) / time.Second)
	return r, nil
}

// ETag is strong: the digest of a copy; for a pinned file, which has none, its
// identity.
func (r *Reader) ETag() string {
	if r.SHA256 != "" {
		return `"` + r.SHA256 + `"`
	}
	return `"` + r.ID + `"`
}

// Size is the recorded one; both embedded types have one.
func (r *Reader) Size() int64 { return r.Artifact.Size }

// Close lets go of the artifact.
func (r *Reader) Close() {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	r.store.unuse(r.item)
}
