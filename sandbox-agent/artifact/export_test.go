package artifact

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/archive"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

func write(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCopiesTakeNoMoreThanTheirTotal: at it, one byte below and one above, and all
// of it again when they are gone.
func TestCopiesTakeNoMoreThanTheirTotal(t *testing.T) {
	t.Parallel()
	const size, n = 1000, 5
	for name, c := range map[string]struct {
		total int64
		last  error
	}{
		"exactly as much":       {n * size, nil},
		"a byte more":           {n*size + 1, nil},
		"a byte less":           {n*size - 1, ErrTooMuch},
		"less than one file":    {size - 1, ErrTotal},
		"one file, and no more": {size, ErrTooMuch},
	} {
		s, c2, dir := fixture(t)
		write(t, dir, "f", make([]byte, size))
		q := Request{Path: "f", Limit: size, Total: c.total}
		var err error
		taken := 0
		for range n {
			if _, err = s.Take(t.Context(), q); err != nil {
				break
			}
			taken++
		}
		if !errors.Is(err, c.last) {
			t.Errorf("%s: want %v, got %v after %d", name, c.last, err, taken)
		}
		if s.used != int64(taken)*size || s.writing != 0 {
			t.Errorf("%s: %d bytes used and %d being written by %d copies", name, s.used, s.writing, taken)
		}
		c2.Advance(Lifetime)
		nothingIsReserved(t, s)
	}
}

// TestConcurrentExports: 200 at once get exactly the slots, or exactly the bytes,
// that there are, and an archive's bytes count as a copy's do.
func TestConcurrentExports(t *testing.T) {
	t.Parallel()
	const size = 1000
	for name, c := range map[string]struct {
		total int64
		want  int32
	}{
		"slots":            {1 << 30, wire.MaxArtifacts},
		"bytes":            {50 * size, 50},
		"a byte too few":   {50*size - 1, 49},
		"a byte to spare":  {50*size + 1, 50},
		"bytes of a slot":  {128 * size, 128},
		"one byte of less": {128*size - 1, 127},
	} {
		s, _, dir := fixture(t)
		write(t, dir, "f", make([]byte, size))
		var taken atomic.Int32
		ids := make(chan string, 200)
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				a, err := s.Take(t.Context(), Request{Path: "f", Limit: size, Total: c.total})
				switch {
				case err == nil:
					taken.Add(1)
					ids <- a.ID
				case !errors.Is(err, ErrTooMany) && !errors.Is(err, ErrTooMuch):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if taken.Load() != c.want {
			t.Errorf("%s: want %d, got %d", name, c.want, taken.Load())
		}
		close(ids)
		for id := range ids {
			if err := s.Drop(id); err != nil {
				t.Error(err)
			}
		}
		nothingIsReserved(t, s)
	}
}

// TestAReaderKeepsTheBytes of an artifact that is dropped: they are on disk still.
func TestAReaderKeepsTheBytes(t *testing.T) {
	t.Parallel()
	s, _, _ := fixture(t)
	a := take(t, s)
	r, err := s.Open(a.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Drop(a.ID); err != nil {
		t.Fatal(err)
	}
	if s.used != a.Size {
		t.Errorf("%d bytes used while a copy of %d is read", s.used, a.Size)
	}
	r.Close()
	nothingIsReserved(t, s)
}

// TestHalfOfTheDiskIsLeft to others.
func TestHalfOfTheDiskIsLeft(t *testing.T) {
	t.Parallel()
	for free, want := range map[int64]error{2000: nil, 2001: nil, 1999: ErrNoSpace, 0: ErrNoSpace} {
		s, _, dir := fixture(t)
		s.free = func(*os.File) (int64, error) { return free, nil }
		write(t, dir, "f", make([]byte, 1000))
		if _, err := s.Take(t.Context(), file("f")); !errors.Is(err, want) {
			t.Errorf("%d bytes free: want %v, got %v", free, want, err)
		}
	}
}

// TestFailuresGiveAllBack: whatever an export fails of.
func TestFailuresGiveAllBack(t *testing.T) {
	t.Parallel()
	over := file("big")
	over.Limit = 99
	tree := Request{Path: "tree", Archive: true, Limit: 1 << 20, Total: 1 << 20}
	with := func(q Request, change func(*Request)) Request { change(&q); return q }
	for name, c := range map[string]struct {
		q    Request
		prep func(t *testing.T, s *Store, dir string)
		want error
	}{
		"missing":             {q: file("missing"), want: ErrNotFound},
		"directory":           {q: file("tree"), want: ErrDirectory},
		"the workspace":       {q: file("."), want: ErrDirectory},
		"link":                {q: file("link"), want: ErrKind},
		"FIFO":                {q: file("fifo"), want: ErrKind},
		"archive of a FIFO":   {q: with(tree, func(q *Request) { q.Path = "fifo" }), want: ErrKind},
		"archive of a link":   {q: with(tree, func(q *Request) { q.Path = "link" }), want: ErrKind},
		"archive of nothing":  {q: with(tree, func(q *Request) { q.Path = "missing" }), want: ErrNotFound},
		"too large":           {q: over, want: ErrTooLarge},
		"archive too large":   {q: with(tree, func(q *Request) { q.Limit = 5000 }), want: ErrArchive},
		"contents too large":  {q: with(tree, func(q *Request) { q.Limit = 100 }), want: archive.ErrBytes},
		"archive over total":  {q: with(tree, func(q *Request) { q.Total = 5000 }), want: ErrTotal},
		"total is taken":      {q: with(tree, func(q *Request) { q.Total = 12_000 }), want: ErrTooMuch, prep: func(_ *testing.T, s *Store, _ string) { s.used = 11_000 }},
		"disk is full":        {q: tree, want: ErrNoSpace, prep: func(_ *testing.T, s *Store, _ string) { s.free = func(*os.File) (int64, error) { return 100, nil } }},
		"disk can't be asked": {q: tree, want: unix.EIO, prep: func(_ *testing.T, s *Store, _ string) { s.free = func(*os.File) (int64, error) { return 0, unix.EIO } }},
		"no place":            {q: tree, want: unix.ENOENT, prep: func(_ *testing.T, s *Store, dir string) { s.spools = []string{filepath.Join(dir, "nowhere")} }},
		"too slow":            {q: tree, want: ErrSlow, prep: func(_ *testing.T, s *Store, _ string) { s.patience = 0 }},
		"digest too slow":     {q: Request{Path: "large", Digest: true, Limit: 1 << 30, Total: 1}, want: ErrSlow, prep: func(_ *testing.T, s *Store, _ string) { s.patience = 0 }},
	} {
		s, _, dir := fixture(t)
		write(t, dir, "big", make([]byte, 100))
		write(t, dir, "tree/noise", noise(10_000))
		write(t, dir, "large", nil)
		if err := errors.Join(
			os.Truncate(filepath.Join(dir, "large"), wire.CopiedArtifact+1),
			os.Symlink("tree", filepath.Join(dir, "link")),
			unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600),
		); err != nil {
			t.Fatal(err)
		}
		if c.prep != nil {
			c.prep(t, s, dir)
		}
		used := s.used
		if _, err := s.Take(t.Context(), c.q); !errors.Is(err, c.want) {
			t.Errorf("%s: want %v, got %v", name, c.want, err)
		}
		s.used -= used
		nothingIsReserved(t, s)
	}
}

func noise(n int) []byte {
	b := make([]byte, n)
	state := uint32(1)
	for i := range b { // xorshift
		state ^= state << 13
		state ^= state >> 17
		state ^= state << 5
		b[i] = byte(state)
	}
	return b
}

// TestACancelledExportEnds, waiting for its turn or at work.
func TestACancelledExportEnds(t *testing.T) {
	t.Parallel()
	s, _, dir := fixture(t)
	write(t, dir, "tree/f", nil)
	q := Request{Path: "tree", Archive: true, Limit: 1 << 20, Total: 1 << 20}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Take(ctx, q); !errors.Is(err, context.Canceled) {
		t.Errorf("want it cancelled, got %v", err)
	}
	nothingIsReserved(t, s)
	for range maxTurns {
		s.turns <- struct{}{}
	}
	ctx, cancel = context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { _, err := s.Take(ctx, q); ended <- err }()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("waiting: want it cancelled, got %v", err)
	}
	if _, err := s.Take(t.Context(), file("f")); err != nil {
		t.Errorf("a copy waits for no turn: %v", err)
	}
}

// TestAnExportThatOnlyWaited is told of the others, not to take less.
func TestAnExportThatOnlyWaited(t *testing.T) {
	t.Parallel()
	s, _, dir := fixture(t)
	s.patience = time.Millisecond
	write(t, dir, "tree/f", nil)
	for range maxTurns {
		s.turns <- struct{}{}
	}
	if _, err := s.Take(t.Context(), Request{Path: "tree", Archive: true, Limit: 1 << 20, Total: 1 << 20}); !errors.Is(err, ErrBusy) {
		t.Errorf("want ErrBusy, got %v", err)
	}
	for range maxTurns {
		s.done()
	}
	nothingIsReserved(t, s)
}

// TestCloseEndsExports: it waits for them, and they say why.
func TestCloseEndsExports(t *testing.T) {
	t.Parallel()
	s, _, dir := fixture(t)
	write(t, dir, "tree/f", nil)
	for range maxTurns {
		s.turns <- struct{}{}
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.Take(t.Context(), Request{Path: "tree", Archive: true, Limit: 1 << 20, Total: 1 << 20})
		ended <- err
	}()
	for { // until it has begun
		s.mu.Lock()
		begun := s.reserved == 1
		s.mu.Unlock()
		if begun {
			break
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("want ErrClosed, got %v", err)
	}
	if s.reserved != 0 {
		t.Errorf("%d slots are reserved", s.reserved)
	}
}

// TestAnExportThatEndsAfterCloseIsNoArtifact, and its file is closed.
func TestAnExportThatEndsAfterCloseIsNoArtifact(t *testing.T) {
	t.Parallel()
	s, _, dir := fixture(t)
	e, err := s.begin(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.reserve(7, f); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	if _, err := e.insert(&item{file: f}); !errors.Is(err, ErrClosed) {
		t.Errorf("want ErrClosed, got %v", err)
	}
	if _, err := f.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("want the file closed, got %v", err)
	}
	nothingIsReserved(t, s)
}
