package artifact

import (
	"errors"
	"io"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// What a read of a pinned file fails with.
var (
	ErrShrunk    = errors.New("the file has shrunk since it was exported")
	ErrRewritten = errors.New("the file was written to since its digest was taken")
)

// Reader reads one artifact. It stays readable until it is closed, also when
// the artifact expires or is dropped meanwhile. Its reads yield all bytes or an
// error.
type Reader struct {
	wire.Artifact
	*io.SectionReader
	store *Store
	item  *item
}

// Open returns a reader of an artifact. It returns ErrNotFound when there is
// none (any more), ErrShrunk or ErrRewritten when it is no longer what it was.
func (s *Store) Open(id string) (*Reader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	it := s.find(id)
	if it == nil {
		return nil, ErrNotFound
	}
	if err := it.check(); err != nil {
		return nil, err
	}
	it.users++
	r := &Reader{Artifact: it.Artifact, store: s, item: it}
	r.SectionReader = io.NewSectionReader(it, 0, it.Size)
	r.ExpiresIn = int(it.expires.Sub(s.clock.Now()) / time.Second)
	return r, nil
}

// check tells whether a file still has what was exported, as far as its size and,
// with a digest, its time of writing tell.
func (it *item) check() error {
	now, err := it.stat()
	switch {
	case err != nil || now.size < it.Size:
		return ErrShrunk
	case it.stamp != nil && now != *it.stamp:
		return ErrRewritten
	}
	return nil
}

// ReadAt implements io.ReaderAt for parts within Size. It looks at the file once
// it has read: what was read is no longer of what was exported, or it was.
func (it *item) ReadAt(p []byte, off int64) (int, error) {
	n, err := it.file.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		return 0, ErrShrunk
	}
	if err == nil && it.stamp != nil {
		err = it.check()
	}
	if err != nil {
		return 0, err
	}
	return n, nil
}

// ETag is strong: the digest, or, for a pinned file that has none, its identity.
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
