package artifact

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/berth-dev/berth/sandbox-agent/filename"
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

// file asks for one without limits that matter.
func file(path string) Request { return Request{Path: path, Limit: 1 << 20, Total: 1 << 30} }

// nothingIsReserved holds when no export is under way and no artifact is held.
func nothingIsReserved(t *testing.T, s *Store) {
	t.Helper()
	if s.reserved != 0 || s.used != 0 || s.writing != 0 || len(s.turns) != 0 || s.ages.Len() != 0 {
		t.Errorf("%d slots are reserved, %d bytes used, %d being written, %d turns taken, %d artifacts held", s.reserved, s.used, s.writing, len(s.turns), s.ages.Len())
	}
}

func take(t *testing.T, s *Store) wire.Artifact {
	t.Helper()
	a, err := s.Take(t.Context(), file("f"))
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
	if _, err := s.Take(t.Context(), file("f")); !errors.Is(err, ErrTooMany) {
		t.Fatalf("want ErrTooMany, got %v", err)
	}
	if _, err := s.Take(t.Context(), file("missing")); !errors.Is(err, ErrTooMany) {
		t.Errorf("want the slot looked at first, got %v", err)
	}
	c.Time = c.Time.Add(Lifetime) // the timer is late
	take(t, s)
	for range wire.MaxArtifacts + 1 { // refusals give their slot back
		if _, err := s.Take(t.Context(), file("missing")); !errors.Is(err, ErrNotFound) {
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
		if _, err := s.Take(t.Context(), file("f")); errors.Is(err, ErrClosed) {
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

func TestACopyNeedsAPlace(t *testing.T) {
	s, _, _ := fixture(t)
	s.spools = []string{"/proc"}
	for _, q := range []Request{file("f"), {Path: ".", Archive: true, Limit: 1 << 20, Total: 1 << 20}} {
		if _, err := s.Take(t.Context(), q); err == nil {
			t.Errorf("%+v: want an error where no file can be made", q)
		}
	}
	nothingIsReserved(t, s)
}

func FuzzRelative(f *testing.F) {
	for _, s := range []string{"a", "../a", "/w/a", "/w/../etc", "..name", "a/../../b", "//w//a", "/wx", ".", "a\x00", strings.Repeat("a/", 3000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got, err := relative("/w", path)
		if err == nil && (!filepath.IsLocal(got) || got != filepath.Clean(got)) {
			t.Errorf("%q became %q", path, got)
		}
	})
}

func FuzzName(f *testing.F) {
	f.Add("a/b\n.txt")
	f.Add("x\u202Egpj.exe")
	f.Add("\xff")
	f.Fuzz(func(t *testing.T, path string) {
		for _, got := range []string{name(path), archiveName(filepath.Base(path))} {
			if strings.ContainsAny(got, "\n\r\x00\u202e\u2028") || !utf8.ValidString(got) || len(got) > max(filename.Max, len(path)) {
				t.Errorf("%q became %q", path, got)
			}
		}
	})
}
