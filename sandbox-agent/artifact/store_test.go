package artifact

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/wire"
	"github.com/berth-dev/berth/test/clock"
)

func fixture(t *testing.T) (*Store, *clock.Clock, string) {
	t.Helper()
	dir, c := t.TempDir(), clock.New()
	s, err := NewStore(dir, []string{dir}, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	return s, c, dir
}

func take(t *testing.T, s *Store) wire.Artifact {
	t.Helper()
	a, err := s.Take("f", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestExpiry: exact, with one timer however many artifacts, and none when
// there is nothing to expire.
func TestExpiry(t *testing.T) {
	s, c, _ := fixture(t)
	first := take(t, s)
	c.Advance(time.Minute)
	second := take(t, s)
	if c.Waiting() != 1 {
		t.Errorf("want one timer, got %d", c.Waiting())
	}
	c.Advance(Lifetime - time.Minute - time.Nanosecond)
	r, err := s.Open(first.ID)
	if err != nil {
		t.Fatalf("in its last nanosecond: %v", err)
	}
	if r.ExpiresIn != 0 {
		t.Errorf("want less than a second left, got %d", r.ExpiresIn)
	}
	c.Advance(time.Nanosecond)
	if _, err := s.Open(first.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("expired: want ErrNotFound, got %v", err)
	}
	if data, err := io.ReadAll(r); err != nil || string(data) != "content" {
		t.Errorf("a read under way at expiry: %q, %v", data, err)
	}
	file := r.item.file
	r.Close()
	if _, err := file.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("want the file closed with its last reader, got %v", err)
	}
	if _, err := s.Open(second.ID); err != nil {
		t.Errorf("the second: %v", err)
	}
	c.Advance(time.Minute)
	if s.ages.Len() != 0 || c.Waiting() != 0 {
		t.Errorf("want nothing held and no timer, got %d and %d", s.ages.Len(), c.Waiting())
	}
}

func TestExpiredArtifactsFreeTheirSlots(t *testing.T) {
	s, c, _ := fixture(t)
	for range wire.MaxArtifacts {
		take(t, s)
	}
	if _, err := s.Take("f", 1<<20); !errors.Is(err, ErrTooMany) {
		t.Fatalf("want ErrTooMany, got %v", err)
	}
	if _, err := s.Take("missing", 1<<20); !errors.Is(err, ErrTooMany) {
		t.Errorf("want the slot looked at first, got %v", err)
	}
	c.Time = c.Time.Add(Lifetime) // the timer is late
	take(t, s)
	for range wire.MaxArtifacts + 1 { // refusals give their slot back
		if _, err := s.Take("missing", 1<<20); !errors.Is(err, ErrNotFound) {
			t.Fatalf("want ErrNotFound, got %v", err)
		}
	}
	if s.reserved != 0 {
		t.Errorf("%d slots are reserved", s.reserved)
	}
}

func TestCloseWaitsForReaders(t *testing.T) {
	s, c, _ := fixture(t)
	r, err := s.Open(take(t, s).ID)
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	for { // until Close has begun
		if _, err := s.Take("f", 1<<20); errors.Is(err, ErrClosed) {
			break
		}
	}
	select {
	case err := <-closed:
		t.Fatalf("closed under a reader: %v", err)
	default:
	}
	if data, err := io.ReadAll(r); err != nil || string(data) != "content" {
		t.Errorf("got %q, %v", data, err)
	}
	r.Close()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if c.Waiting() != 0 {
		t.Error("a timer is left")
	}
}

func TestCopyIsExactlyLimited(t *testing.T) {
	dirs := []string{t.TempDir()}
	for size, want := range map[int]error{9: nil, 10: nil, 11: ErrTooLarge} {
		f, n, _, err := copyOf(bytes.NewReader(make([]byte, size)), dirs, 10)
		if !errors.Is(err, want) || err == nil && n != int64(size) {
			t.Errorf("%d bytes: %d, %v", size, n, err)
		}
		if f != nil {
			f.Close()
		}
	}
}

func TestCopyNeedsAPlace(t *testing.T) {
	if _, _, _, err := copyOf(strings.NewReader("x"), []string{"/proc"}, 10); err == nil {
		t.Error("want an error where no file can be made")
	}
}

func FuzzRelative(f *testing.F) {
	for _, s := range []string{"a", "../a", "/w/a", "/w/../etc", "..name", "a/../../b", "//w//a", "/wx", ".", "a\x00", strings.Repeat("a/", 3000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got, err := relative("/w", path)
		if err == nil && (!filepath.IsLocal(got) || got == "." || got != filepath.Clean(got)) {
			t.Errorf("%q became %q", path, got)
		}
	})
}

func FuzzName(f *testing.F) {
	f.Add("a/b\n.txt")
	f.Add("x\u202Egpj.exe")
	f.Add("\xff")
	f.Fuzz(func(t *testing.T, path string) {
		if got := name(path); strings.ContainsAny(got, "\n\r\x00\u202e\u2028") {
			t.Errorf("%q became %q", path, got)
		}
	})
}
