package artifact

import (
	"context"
	"errors"
	"io"
	"syscall"
)

// stamp tells whether a file was written to.
type stamp struct {
	size  int64
	wrote syscall.Timespec
}

func (it *item) stat() (stamp, error) {
	info, err := it.file.Stat()
	if err != nil {
		return stamp{}, ErrNotFound
	}
	return stamp{info.Size(), info.Sys().(*syscall.Stat_t).Mtim}, nil
}

// digest gives it its SHA-256, and remembers the state of the file of which that
// is: ErrChanged when it is of none.
func (s *Store) digest(ctx context.Context, it *item) error {
	if err := s.turn(ctx); err != nil {
		return err
	}
	defer s.done()
	before, err := it.stat()
	if err != nil {
		return err
	}
	digest, err := sum(&cancellable{ctx, io.NewSectionReader(it, 0, it.Size)})
	if errors.Is(err, ErrShrunk) {
		return ErrChanged
	}
	if err != nil {
		return err
	}
	after, err := it.stat()
	if err != nil || before != after || after.size != it.Size {
		return ErrChanged
	}
	it.SHA256, it.stamp = digest, &after
	return nil
}

// cancellable ends a read with its context.
type cancellable struct {
	ctx context.Context
	io.Reader
}

func (c *cancellable) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.Reader.Read(p)
}

// turn waits until few enough exports are at work on much. It returns ErrBusy if all
// of an export's time went by with that.
func (s *Store) turn(ctx context.Context) error {
	select {
	case s.turns <- struct{}{}: // also when ctx is done: then that is found at work
		return nil
	default:
	}
	select {
	case s.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), ErrSlow) {
			return ErrBusy
		}
		return ctx.Err()
	}
}

func (s *Store) done() { <-s.turns }
