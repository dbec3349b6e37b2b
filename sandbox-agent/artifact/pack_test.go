package artifact

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// member is one of an archive.
type member struct {
	name, content string
	file          bool
}

func members(t *testing.T, r io.Reader) (all []member) {
	t.Helper()
	zipped, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	for tr := tar.NewReader(zipped); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, member{h.Name, string(content), h.Typeflag == tar.TypeReg})
	}
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
		got := ""
		for _, m := range members(t, r) {
			got += " " + m.name
		}
		r.Close()
		want := strings.NewReplacer("T/", base+"/").Replace(" T/ T/f T/sub/ T/sub/.berth/ T/sub/.berth/x")
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
