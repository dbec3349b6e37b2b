package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

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

// TestArchivesOfTheWorkspace: by any of its names, without what is the agent's own.
func TestArchivesOfTheWorkspace(t *testing.T) {
	t.Parallel()
	s, _, dir := fixture(t)
	write(t, dir, ".berth/logs/x.stdout", []byte("log"))
	write(t, dir, ".berth-spool-XY", []byte("spooled"))
	write(t, dir, "sub/.berth/x", []byte("no one's but the session's"))
	for _, path := range []string{".", "./", "sub/..", dir, dir + "/"} {
		a, err := s.Take(t.Context(), Request{Path: path, Archive: true, Limit: 1 << 20, Total: 1 << 20})
		if err != nil {
			t.Fatalf("%q: %v", path, err)
		}
		base := filepath.Base(dir)
		if a.Name != base+".tar.gz" || a.MIMEType != "application/gzip" || a.SHA256 == "" || a.Notice != "" {
			t.Errorf("%q: got %+v", path, a)
		}
		r, err := s.Open(a.ID)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(listing(t, r), " ")
		r.Close()
		want := strings.NewReplacer("T/", base+"/").Replace("T/ T/f T/sub/ T/sub/.berth/ T/sub/.berth/x")
		if got != want {
			t.Errorf("%q: want %s, got %s", path, want, got)
		}
		if err := s.Drop(a.ID); err != nil {
			t.Fatal(err)
		}
	}
	nothingIsReserved(t, s)
}

func TestArchiveNames(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"a":                            "a.tar.gz",
		"..name":                       "..name.tar.gz",
		"x\u202ey\n":                   "x_y_.tar.gz",
		strings.Repeat("n", 248):       strings.Repeat("n", 248) + ".tar.gz",
		strings.Repeat("n", 249):       strings.Repeat("n", 248) + ".tar.gz",
		strings.Repeat("n", 247) + "ü": strings.Repeat("n", 247) + ".tar.gz",
	} {
		if got := archiveName(base); got != want {
			t.Errorf("%q: got %q", base, got)
		}
	}
}

// TestAnArchivesLimitIsExact, by its compressed size.
func TestAnArchivesLimitIsExact(t *testing.T) {
	t.Parallel()
	s, _, dir := fixture(t)
	write(t, dir, "tree/noise", noise(300_000))
	q := Request{Path: "tree", Archive: true, Limit: 1 << 20, Total: 1 << 30}
	a, err := s.Take(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for d, want := range map[int64]error{-1: ErrArchive, 0: nil, 1: nil} {
		q.Limit = a.Size + d
		if _, err := s.Take(t.Context(), q); !errors.Is(err, want) {
			t.Errorf("limit%+d: want %v, got %v", d, want, err)
		}
	}
	q.Limit = math.MaxInt64
	if b, err := s.Take(t.Context(), q); err != nil || b.SHA256 != a.SHA256 {
		t.Errorf("without a limit: %v", err)
	}
}

// TestDigestOfALargeFile: of what it is, and of nothing else from then on.
func TestDigestOfALargeFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(path string) error
		digest error // of a read of what has a digest
		plain  error // and of what has none
	}{
		"as it was": {func(string) error { return nil }, nil, nil},
		"renamed":   {func(path string) error { return os.Rename(path, path+"2") }, nil, nil},
		"removed":   {os.Remove, nil, nil},
		"rewritten": {func(path string) error { return patch(path, "changed") }, ErrRewritten, nil},
		"grown":     {func(path string) error { return os.Truncate(path, wire.CopiedArtifact+2) }, ErrRewritten, nil},
		"shrunk":    {func(path string) error { return os.Truncate(path, 5) }, ErrShrunk, ErrShrunk},
	} {
		s, _, dir := fixture(t)
		path := filepath.Join(dir, "f")
		write(t, dir, "f", noise(wire.CopiedArtifact+1))
		old := s.clock.Now().AddDate(-1, 0, 0)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		q := Request{Path: "f", Limit: 1 << 30, Total: 1}
		plain, err := s.Take(t.Context(), q)
		if err != nil || plain.SHA256 != "" {
			t.Fatalf("%+v, %v", plain, err)
		}
		q.Digest = true
		digest, err := s.Take(t.Context(), q)
		if err != nil || digest.SHA256 != hexSum(noise(wire.CopiedArtifact+1)) {
			t.Fatalf("%+v, %v", digest, err)
		}
		if err := c.change(path); err != nil {
			t.Fatal(err)
		}
		if err := readWhole(s, digest.ID); !errors.Is(err, c.digest) {
			t.Errorf("%s: want %v, got %v", name, c.digest, err)
		}
		if err := readWhole(s, plain.ID); !errors.Is(err, c.plain) {
			t.Errorf("%s, without digest: want %v, got %v", name, c.plain, err)
		}
		if s.used != 0 {
			t.Errorf("%d bytes are used by files that are pinned", s.used)
		}
	}
}

func patch(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(content), 100)
	return errors.Join(err, f.Close())
}

func readWhole(s *Store, id string) error {
	r, err := s.Open(id)
	if err != nil {
		return err
	}
	defer r.Close()
	n, err := io.Copy(io.Discard, r)
	if err == nil && n != r.Size() {
		return fmt.Errorf("%d bytes of %d without an error", n, r.Size())
	}
	return err
}

// TestChangesDuringARead: it fails at the next piece, whatever came before.
func TestChangesDuringARead(t *testing.T) {
	t.Parallel()
	for _, digest := range []bool{false, true} {
		s, _, dir := fixture(t)
		path := filepath.Join(dir, "f")
		write(t, dir, "f", noise(wire.CopiedArtifact+1))
		old := s.clock.Now().AddDate(-1, 0, 0)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		a, err := s.Take(t.Context(), Request{Path: "f", Digest: digest, Limit: 1 << 30, Total: 1})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Open(a.ID)
		if err != nil {
			t.Fatal(err)
		}
		piece := make([]byte, 1000)
		if n, err := r.Read(piece); n != 1000 || err != nil {
			t.Fatal(n, err)
		}
		if digest {
			if err := patch(path, "changed"); err != nil {
				t.Fatal(err)
			}
			if n, err := r.Read(piece); n != 0 || !errors.Is(err, ErrRewritten) {
				t.Errorf("rewritten: %d bytes, %v", n, err)
			}
		}
		for size, want := range map[int64]int{1500: 0, 1000: 0, 0: 0} {
			if err := os.Truncate(path, size); err != nil {
				t.Fatal(err)
			}
			if n, err := r.Read(piece); n != want || !errors.Is(err, ErrShrunk) {
				t.Errorf("cut to %d: %d bytes, %v", size, n, err)
			}
		}
		r.Close()
	}
}
