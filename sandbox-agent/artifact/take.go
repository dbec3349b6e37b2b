package artifact

import (
	"context"
	"errors"
	"os"

	"github.com/berth-dev/berth/sandbox-agent/filetype"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Request says what to take.
type Request struct {
	// Path is relative to the workspace, or absolute inside it.
	Path string
	// Archive takes a directory, or a file, as .tar.gz.
	Archive bool
	// Digest asks for the SHA-256 of a large file too.
	Digest bool
	// Limit is the most bytes that the artifact may have.
	Limit int64
	// Total is the most bytes that copies and archives may take on disk together.
	Total int64
}

// attempts is how often a file is taken anew that is written to meanwhile.
const attempts = 3

// Take exports a file, or an archive. It gives up when ctx ends.
func (s *Store) Take(ctx context.Context, q Request) (wire.Artifact, error) {
	rel, err := relative(s.workspace, q.Path)
	if err != nil {
		return wire.Artifact{}, err
	}
	e, err := s.begin(q.Total)
	if err != nil {
		return wire.Artifact{}, err
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	it, err := e.take(ctx, rel, q)
	if err != nil {
		e.end()
		if ctx.Err() != nil && !errors.Is(err, ErrBusy) {
			err = context.Cause(ctx)
		}
		return wire.Artifact{}, err
	}
	return e.insert(it)
}

// bounded ends ctx when the store closes, or when an export has taken too long.
func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithTimeoutCause(ctx, s.patience, ErrSlow)
	ctx, cancel := context.WithCancelCause(ctx)
	detach := context.AfterFunc(s.closing, func() { cancel(ErrClosed) })
	return ctx, func() {
		detach()
		cancel(nil)
		stop()
	}
}

// take opens what is at rel. The file that it opens stays open if it is pinned.
func (e *export) take(ctx context.Context, rel string, q Request) (*item, error) {
	f, info, err := open(e.store.root, rel)
	if err != nil {
		return nil, err
	}
	var it *item
	switch {
	case !info.Mode().IsRegular() && !info.IsDir():
		err = ErrKind
	case q.Archive:
		it, err = e.archive(ctx, f, rel, q.Limit)
	case info.IsDir():
		err = ErrDirectory
	default:
		it, err = e.settled(ctx, f, rel, q)
	}
	if err != nil || it.file != f {
		f.Close()
	}
	return it, err
}

// settled takes a file, anew if it changed meanwhile.
func (e *export) settled(ctx context.Context, f *os.File, rel string, q Request) (*item, error) {
	for range attempts {
		it, err := e.file(ctx, f, q)
		if err == nil {
			it.Name = name(rel)
			it.MIMEType, _ = filetype.Of(rel, it.file)
		}
		if !errors.Is(err, ErrChanged) {
			return it, err
		}
		e.release()
	}
	return nil, ErrChanged
}

// file takes a file as it is now: a copy of a small one, of a large one where
// that costs nothing, and else the file itself.
func (e *export) file(ctx context.Context, f *os.File, q Request) (*item, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, ErrNotFound
	}
	size := info.Size()
	if size > q.Limit {
		return nil, ErrTooLarge
	}
	if size <= wire.CopiedArtifact {
		return e.copied(f, size, q.Limit)
	}
	it := e.cloned(f, q.Limit)
	if it == nil {
		it = &item{file: f}
		it.Size = size
	}
	if q.Digest {
		if err := e.store.digest(ctx, it); err != nil {
			if it.file != f {
				it.file.Close()
			}
			return nil, err
		}
	}
	return it, nil
}
