package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

func (a *agent) write(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(a.workspace, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (a *agent) export(t testing.TB, path string) *client.Artifact {
	t.Helper()
	artifact, err := a.client.Export(t.Context(), a.pod, client.ExportRequest{Path: path})
	if err != nil {
		t.Fatalf("export %q: %v", path, err)
	}
	return artifact
}

func (a *agent) read(t testing.TB, id string, span client.Span) ([]byte, *client.Reading, error) {
	t.Helper()
	r, err := a.client.ReadArtifact(t.Context(), a.pod, id, span, 64<<20)
	if err != nil {
		return nil, nil, err
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	return data, r, err
}

func noise(n int) []byte {
	b := make([]byte, n)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(b) // never fails
	return b
}

func TestExportAndRead(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	if err := os.Mkdir(filepath.Join(a.workspace, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		mime string
	}{
		"a.txt":          {[]byte("hello\n"), "text/plain"},
		"empty":          {nil, "text/plain"},
		"empty.bin":      {nil, "application/octet-stream"},
		"latin1.txt":     {[]byte("caf\xe9\n"), "text/plain"},
		"a.json":         {[]byte(`{"a":1}`), "application/json"},
		"a.png":          {[]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), "image/png"},
		"png.txt":        {[]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), "image/png"},
		"text.png":       {[]byte("no picture"), "text/plain"},
		"noise":          {noise(100_000), "application/octet-stream"},
		"sub/b.csv":      {[]byte("a,b\n1,2\n"), "text/csv"},
		"..name":         {[]byte("inside"), "text/plain"},
		"with space.txt": {[]byte("x"), "text/plain"},
		"ü漢.txt":         {[]byte("x"), "text/plain"},
	} {
		t.Run(name, func(t *testing.T) {
			a.write(t, name, c.data)
			for _, path := range []string{name, "./" + name, filepath.Join(a.workspace, name), "sub/../" + name} {
				got := a.export(t, path)
				sum := sha256.Sum256(c.data)
				if got.Name != filepath.Base(name) || got.Size != int64(len(c.data)) || got.SHA256 != hex.EncodeToString(sum[:]) || got.ExpiresIn != 300 {
					t.Errorf("export %q: got %+v", path, got)
				}
				if got.MIMEType != c.mime {
					t.Errorf("MIME type: want %q, got %q", c.mime, got.MIMEType)
				}
				data, reading, err := a.read(t, got.ID, client.Span{})
				if err != nil || !bytes.Equal(data, c.data) {
					t.Errorf("read: %v, %d of %d bytes", err, len(data), len(c.data))
				}
				if reading.Name != got.Name || reading.MIMEType != got.MIMEType || reading.SHA256 != got.SHA256 || reading.Size != got.Size {
					t.Errorf("what a reader is told: want %+v, got %+v", got, reading.Artifact)
				}
			}
		})
	}
}

// TestExportRefusals: quick, and without the name of an absolute path.
func TestExportRefusals(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	at := func(name string) string { return filepath.Join(a.workspace, name) }
	secret := filepath.Join(t.TempDir(), "secret")
	for _, err := range []error{
		os.WriteFile(secret, []byte("s"), 0o600),
		os.Mkdir(at("dir"), 0o700),
		os.WriteFile(at("dir/file"), []byte("f"), 0o600),
		os.Symlink(secret, at("out")),
		os.Symlink("/etc", at("etc")),
		os.Symlink("../../..", at("up")),
		os.Symlink("dir/file", at("inner")),
		os.Symlink("dir", at("innerdir")),
		os.Symlink("loop", at("loop")),
		os.Symlink("/nowhere", at("dangling")),
		unix.Mkfifo(at("fifo"), 0o600),
		unix.Mknod(at("null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	a.output(t, `python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'`)
	for path, want := range map[string]error{
		"../x":                     client.ErrOutsideWorkspace,
		"..":                       client.ErrOutsideWorkspace,
		"dir/../../x":              client.ErrOutsideWorkspace,
		"/etc/passwd":              client.ErrOutsideWorkspace,
		a.workspace + "x/y":        client.ErrOutsideWorkspace,
		a.workspace + "/../x":      client.ErrOutsideWorkspace,
		"etc/passwd":               client.ErrOutsideWorkspace,
		"up/etc/passwd":            client.ErrOutsideWorkspace,
		"/proc/self/environ":       client.ErrOutsideWorkspace,
		"out":                      client.ErrNotRegular,
		"dangling":                 client.ErrNotRegular,
		"inner":                    client.ErrNotRegular,
		"loop":                     client.ErrNotRegular,
		"dir":                      client.ErrNotRegular,
		".":                        client.ErrNotRegular,
		"fifo":                     client.ErrNotRegular,
		"null":                     client.ErrNotRegular,
		"socket":                   client.ErrNotRegular,
		"missing":                  client.ErrNotFound,
		"missing/file":             client.ErrNotFound,
		"dir/file/x":               client.ErrNotFound,
		strings.Repeat("n", 300):   client.ErrNotFound,
		strings.Repeat("d/", 2100): nil, // too long: a bad request
		"":                         nil,
		"a\x00b":                   nil,
	} {
		_, err := a.client.Export(t.Context(), a.pod, client.ExportRequest{Path: path})
		var refusal *client.Error
		if !errors.As(err, &refusal) {
			t.Errorf("export %.40q: want a refusal, got %v", path, err)
			continue
		}
		if want != nil && !errors.Is(err, want) || want == nil && refusal.Status != http.StatusBadRequest {
			t.Errorf("export %.40q: want %v, got %v", path, want, err)
		}
		if strings.Contains(refusal.Message, a.workspace) || strings.Contains(refusal.Message, "/etc") {
			t.Errorf("export %.40q names an absolute path: %s", path, refusal.Message)
		}
	}
	if got := a.export(t, "innerdir/file"); got.Size != 1 {
		t.Errorf("a directory link that stays inside: %+v", got)
	}
}

func TestArtifactLimit(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int64{"default": 0, "lower": 1000, "higher": 9 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startAgent(t, agentOptions{limits: client.Limits{ArtifactBytes: limit}})
			if limit == 0 {
				limit = 8 << 20
			}
			for d := int64(-1); d <= 1; d++ {
				a.write(t, "f", nil)
				if err := os.Truncate(filepath.Join(a.workspace, "f"), limit+d); err != nil {
					t.Fatal(err)
				}
				got, err := a.client.Export(t.Context(), a.pod, client.ExportRequest{Path: "f"})
				if d > 0 {
					if !errors.Is(err, client.ErrTooLarge) {
						t.Errorf("limit%+d: want ErrTooLarge, got %v", d, err)
					}
					continue
				}
				if err != nil {
					t.Fatalf("limit%+d: %v", d, err)
				}
				if (got.SHA256 == "") != (limit > 8<<20) {
					t.Errorf("limit%+d: digest %q", d, got.SHA256)
				}
				if data, _, err := a.read(t, got.ID, client.Span{}); err != nil || int64(len(data)) != limit+d {
					t.Errorf("limit%+d: read %d bytes, %v", d, len(data), err)
				}
			}
		})
	}
}

func TestArtifactRanges(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	want := noise(10_000)
	a.write(t, "f", want)
	artifact := a.export(t, "f")
	for _, s := range []client.Span{{}, {Offset: 1}, {Length: 1}, {Offset: 9_999}, {Offset: 5_000, Length: 100}, {Offset: 9_990, Length: 100}} {
		end := int64(len(want))
		if s.Length > 0 {
			end = min(end, s.Offset+s.Length)
		}
		got, r, err := a.read(t, artifact.ID, s)
		if err != nil || !bytes.Equal(got, want[s.Offset:end]) || r.Size != 10_000 || r.Offset != s.Offset {
			t.Errorf("%+v: %d bytes, %v", s, len(got), err)
		}
		if r.ETag != `"`+artifact.SHA256+`"` {
			t.Errorf("want a strong ETag, got %s", r.ETag)
		}
	}
	if _, _, err := a.read(t, artifact.ID, client.Span{Offset: 10_000}); !errors.Is(err, client.ErrRange) {
		t.Errorf("want ErrRange beyond the end, got %v", err)
	}
	if _, err := a.client.ReadArtifact(t.Context(), a.pod, artifact.ID, client.Span{}, 9_999); !errors.Is(err, client.ErrBadAnswer) {
		t.Errorf("want the caller's budget to hold, got %v", err)
	}
}

// TestArtifactSlots: 200 at once, exactly 128, and every descriptor closed
// once they are dropped.
func TestArtifactSlots(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.write(t, "f", []byte("x"))
	before := a.descriptors(t)
	var taken, refused atomic.Int32
	ids := make(chan string, 200)
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			artifact, err := a.client.Export(t.Context(), a.pod, client.ExportRequest{Path: "f"})
			switch {
			case err == nil:
				taken.Add(1)
				ids <- artifact.ID
			case errors.Is(err, client.ErrTooManyArtifacts):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if taken.Load() != 128 || refused.Load() != 72 {
		t.Errorf("want 128 taken and 72 refused, got %d and %d", taken.Load(), refused.Load())
	}
	close(ids)
	for id := range ids {
		if err := a.client.DropArtifact(t.Context(), a.pod, id); err != nil {
			t.Fatal(err)
		}
		if err := a.client.DropArtifact(t.Context(), a.pod, id); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("dropped twice: %v", err)
		}
	}
	a.export(t, "f")
	if after := a.descriptors(t); before != 0 || after != 1 {
		t.Errorf("descriptors: %d before, %d after", before, after)
	}
}

// descriptors counts the copies that the agent holds.
func (a *agent) descriptors(t testing.TB) (n int) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", a.process.Pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatalf("this test needs root, for which alone a non-dumpable process is open: %v", err)
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && strings.HasPrefix(to, a.workspace+"/") {
			n++
		}
	}
	return n
}
