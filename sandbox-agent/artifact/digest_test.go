package artifact

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

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
