package artifact

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// reflinking is a directory on a file system whose files can share blocks.
func reflinking(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to mount: few file systems can share blocks, and that of a test's files may not")
	}
	if _, err := exec.LookPath("mkfs.xfs"); err != nil {
		t.Fatal("mkfs.xfs is missing: install the package xfsprogs, as make test-unit does on Debian")
	}
	dir := t.TempDir()
	image, at := filepath.Join(dir, "image"), filepath.Join(dir, "mounted")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 320<<20), os.Mkdir(at, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{{"mkfs.xfs", "-q", "-m", "reflink=1", image}, {"mount", "-o", "loop", image, at}} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", argv, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return at
}

// TestReflink: also a large file is that of one moment, at the cost of no bytes, but
// of room for what may come to differ.
func TestReflink(t *testing.T) {
	t.Parallel()
	dir := reflinking(t)
	s, err := NewStore(dir, []string{dir}, SystemClock{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, c := range map[string]struct {
		size             int64
		total            int64
		digest           bool
		pinned, digested bool
	}{
		"empty":                   {size: 0, total: 1 << 30, digested: true},
		"small":                   {size: 1000, total: 1 << 30, digested: true},
		"large":                   {size: wire.CopiedArtifact + 1, total: 1 << 30},
		"large, with its digest":  {size: wire.CopiedArtifact + 1, total: 1 << 30, digest: true, digested: true},
		"large, without the room": {size: wire.CopiedArtifact + 1, total: wire.CopiedArtifact, pinned: true},
	} {
		want := noise(int(c.size))
		write(t, dir, "f", want)
		a, err := s.Take(t.Context(), Request{Path: "f", Digest: c.digest, Limit: 1 << 30, Total: c.total})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if used := s.used; (used == c.size) == c.pinned && c.size > 0 {
			t.Errorf("%s: %d bytes used for %d", name, used, c.size)
		}
		if (a.SHA256 == hexSum(want)) != c.digested {
			t.Errorf("%s: digest %q", name, a.SHA256)
		}
		if err := os.WriteFile(filepath.Join(dir, "f"), bytes.Repeat([]byte("x"), int(c.size)), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := s.Open(a.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || bytes.Equal(got, want) == c.pinned {
			t.Errorf("%s: a rewrite is seen by who reads the artifact, or isn't by who reads the file (%v)", name, err)
		}
		r.Close()
		if err := s.Drop(a.ID); err != nil {
			t.Fatal(err)
		}
		nothingIsReserved(t, s)
	}
}
