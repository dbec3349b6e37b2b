package upload

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/filename"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// What an upload is refused with, besides ErrName and ErrStalled.
var (
	ErrBody      = errors.New("the body ended early")
	ErrDirectory = errors.New("the workspace's " + Directory + " is a link, or no directory: remove it")
	ErrForbidden = errors.New("the workspace's " + Directory + " can't be written to")
	ErrTaken     = fmt.Errorf("%d files of this name are there already: remove some, or choose another", tries)
	ErrTooLarge  = errors.New("the file is larger than the limit")
	ErrNoSpace   = errors.New("no space is left in the workspace")
	ErrClosed    = errors.New("the agent is shutting down")
)

// tries is how many names are tried for a file.
const tries = 1000

// Store takes a session's uploads. It is safe for concurrent use.
type Store struct {
	workspace *os.File
	path      string // of the directory, absolute
	now       func() time.Time
	link      func(dir *os.File, from, to string) error

	mu     sync.Mutex
	swept  time.Time
	closed bool
	active sync.WaitGroup
}

// NewStore returns a store of files below workspace.
func NewStore(workspace string, now func() time.Time) (*Store, error) {
	f, err := os.OpenFile(workspace, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	absolute, err := filepath.Abs(workspace)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("workspace: %w", err), f.Close())
	}
	return &Store{workspace: f, path: filepath.Join(absolute, Directory), now: now, link: link}, nil
}

// Save writes body, of at most limit bytes (0: any number), to a file that is
// called name, which Name returned, or name_2 and so on if that exists. received
// is how much came, also when it fails; then nothing is left of it.
func (s *Store) Save(name string, body io.Reader, limit int64) (f wire.File, received int64, err error) {
	if !s.begin() {
		return wire.File{}, 0, ErrClosed
	}
	defer s.active.Done()
	dir, err := step(s.workspace, Directory)
	if err != nil {
		return wire.File{}, 0, refusal(err)
	}
	defer dir.Close()
	if s.sweepDue() {
		Sweep(dir, s.now(), math.MaxInt)
	}
	temporary := filename.Temporary(name, filename.Upload)
	out, err := create(dir, temporary)
	if err != nil {
		return wire.File{}, 0, refusal(err)
	}
	published := ""
	received, err = Receive(out, body, limit)
	err = errors.Join(err, out.Close()) // where a disk may say that it is full
	if err == nil {
		published, err = s.publish(dir, temporary, name)
	}
	if gone := remove(dir, temporary); err == nil && gone != nil && !errors.Is(gone, unix.ENOENT) {
		err = errors.Join(gone, remove(dir, published))
	}
	if err != nil {
		return wire.File{}, received, refusal(err)
	}
	return wire.File{Path: filepath.Join(s.path, published), Name: published, Size: received}, received, nil
}

func (s *Store) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.active.Add(1)
	}
	return !s.closed
}

func (s *Store) sweepDue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	due := s.swept.IsZero() || now.Sub(s.swept) >= sweepEvery
	if due {
		s.swept = now
	}
	return due
}

// Refuse refuses uploads from now on.
func (s *Store) Refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// Close waits for uploads under way. Their bodies must have ended.
func (s *Store) Close() error {
	s.Refuse()
	s.active.Wait()
	return s.workspace.Close()
}

var buffers = sync.Pool{New: func() any { return new([128 << 10]byte) }}

// Receive copies body, of at most limit bytes (0: any number), to out. It returns
// ErrTooLarge, ErrStalled, or ErrBody for a body that ended early.
func Receive(out io.Writer, body io.Reader, limit int64) (received int64, err error) {
	buffer := buffers.Get().(*[128 << 10]byte)
	defer buffers.Put(buffer)
	for {
		n, err := body.Read(buffer[:])
		received += int64(n)
		if limit > 0 && received > limit {
			return received, ErrTooLarge
		}
		if _, err := out.Write(buffer[:n]); err != nil {
			return received, err
		}
		switch {
		case errors.Is(err, io.EOF):
			return received, nil
		case errors.Is(err, ErrStalled):
			return received, err
		case err != nil:
			return received, fmt.Errorf("%w: %w", ErrBody, err)
		}
	}
}

// publish gives a whole file its name, or the first of those that are numbered
// which is free.
func (s *Store) publish(dir *os.File, temporary, name string) (string, error) {
	for n := range tries {
		published := numbered(name, n+1)
		err := s.place(dir, temporary, published)
		if !errors.Is(err, unix.EEXIST) {
			return published, err
		}
	}
	return "", ErrTaken
}

// place makes name the name of a file, which is there or not at all. Where links
// are refused, an empty file keeps the place for a moment.
func (s *Store) place(dir *os.File, temporary, name string) error {
	err := s.link(dir, temporary, name)
	if !linksRefused(err) {
		return err
	}
	holder, err := create(dir, name)
	if err != nil {
		return err
	}
	holder.Close()
	if err := unix.Renameat(int(dir.Fd()), temporary, int(dir.Fd()), name); err != nil {
		return errors.Join(err, remove(dir, name))
	}
	return nil
}

// linksRefused tells whether a file system, or what guards it, takes no hard
// links.
func linksRefused(err error) bool {
	for _, e := range []error{unix.EPERM, unix.EACCES, unix.EOPNOTSUPP, unix.ENOSYS, unix.EMLINK, unix.EXDEV, unix.EINVAL} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// refusal maps an error of the file system.
func refusal(err error) error {
	for _, known := range []struct{ is, err error }{
		{unix.ENOSPC, ErrNoSpace},
		{unix.EDQUOT, ErrNoSpace},
		{unix.EFBIG, ErrTooLarge},
		{unix.EACCES, ErrForbidden},
		{unix.EPERM, ErrForbidden},
		{unix.EROFS, ErrForbidden},
		{unix.ENAMETOOLONG, ErrName},
	} {
		if errors.Is(err, known.is) {
			return known.err
		}
	}
	return err
}
