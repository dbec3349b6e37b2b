package artifact

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// TestClockJumps: an artifact lives no moment longer by a timer that is late, or
// set by a clock that was ahead.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	s, c, _ := fixture(t)
	first := take(t, s)
	c.Time = c.Time.Add(Lifetime) // no timer fires
	if _, err := s.Open(first.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("a late timer: want ErrNotFound, got %v", err)
	}
	if err := s.Drop(first.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("dropped after its time: want ErrNotFound, got %v", err)
	}
	later := take(t, s)
	c.Time = c.Time.Add(-time.Minute)
	sooner := take(t, s) // behind the other, and due before it
	c.Time = c.Time.Add(Lifetime)
	if _, err := s.Open(sooner.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("behind one that lives longer: want ErrNotFound, got %v", err)
	}
	if r, err := s.Open(later.ID); err != nil {
		t.Errorf("before its time: %v", err)
	} else {
		r.Close()
	}
	c.Advance(time.Minute)
	nothingIsReserved(t, s)
	if now := (SystemClock{}).Now(); !strings.Contains(now.String(), " m=") {
		t.Errorf("the system's clock is one that can be set: %s", now)
	}
}

// TestHeldFilesExpireExactly, beside artifacts with times of their own.
func TestHeldFilesExpireExactly(t *testing.T) {
	t.Parallel()
	s, c, dir := fixture(t)
	f, err := os.Open(filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.Hold(wire.Artifact{Name: "log", Size: 7}, f, c.Now().Add(Lifetime+1), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := take(t, s)
	c.Advance(Lifetime)
	if _, err := s.Open(a.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("the artifact: %v", err)
	}
	r, err := s.Open(id)
	if err != nil {
		t.Fatalf("in its last nanosecond: %v", err)
	}
	c.Advance(1)
	if _, err := s.Open(id); !errors.Is(err, ErrNotFound) {
		t.Errorf("after it: %v", err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "content" {
		t.Errorf("a read under way: %q, %v", got, err)
	}
	s.Release(id)
	r.Close()
	if _, err := f.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("want the file closed, got %v", err)
	}
}
