package gateway_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"

	agent "github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/test/localagent"
)

// export exports a file, which must succeed, and gives its token.
func export(t *testing.T, c *mcp.ClientSession, path string) (token string) {
	t.Helper()
	out := structured(t, call(t, c, "export_artifact", object{"path": path}))
	return strings.TrimPrefix(out["uri"].(string), "artifact://berth/")
}

// fetch reads an artifact over HTTP.
func (l *live) fetch(token string) (status int, body string) {
	l.t.Helper()
	resp, body := l.do(http.MethodGet, "/artifacts/"+token, "alice", nil, nil)
	return resp.StatusCode, body
}

// descriptors counts the files of its workspace, with a name or without, that an
// agent has open.
func descriptors(t *testing.T, a *localagent.Agent, workspace string) (n int) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", a.Pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatalf("this test needs root, for which alone a non-dumpable process is open: %v", err)
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && strings.HasPrefix(to, workspace+"/") {
			n++
		}
	}
	return n
}

// noise is what no archive makes smaller.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b) // never fails
	return b
}

// R30: names that only look dangerous, and paths of 4,096 bytes, are exported in
// both eras, and read as they are.
func TestExportOfStrangePaths(t *testing.T) {
	t.Parallel()
	l, workspace := newReal(t)
	deep := strings.Repeat(strings.Repeat("a", 254)+"/", 16) + strings.Repeat("b", 16) // 4,096 bytes
	for _, path := range []string{"..name", "...", "..dir/..name", "new\nline", "a\u202egpj.exe", "-rf", "$(id)", "%2e%2e", "a\\b", "x?offset=1#y", deep} {
		if r := call(t, l.client(eras[1]), "write_file", object{"path": path, "content": path}); r.IsError {
			t.Fatalf("%.40q: %s", path, text(t, r))
		}
		for _, era := range eras {
			for _, given := range []string{path, filepath.Join(workspace, path), "./..dir/../" + path} {
				if len(given) > 4096 {
					continue
				}
				r := call(t, l.client(era), "export_artifact", object{"path": given})
				if r.IsError {
					t.Errorf("%s: %.40q: %s", era, given, text(t, r))
					continue
				}
				token := strings.TrimPrefix(structured(t, r)["uri"].(string), "artifact://berth/")
				if status, body := l.fetch(token); status != http.StatusOK || body != path {
					t.Errorf("%s: %.40q: %d %.40q", era, given, status, body)
				}
			}
		}
	}
	for _, era := range eras {
		wantFailure(t, "4,097 bytes", call(t, l.client(era), "export_artifact", object{"path": deep + "b"}), "artifact export failed: ")
	}
}

// R30: what is no regular file inside is refused in both eras, and named by no
// absolute path; what is missing and what can't be read look alike.
func TestExportRefusesWhatLeadsOut(t *testing.T) {
	t.Parallel()
	l, workspace := newReal(t)
	outside := t.TempDir()
	at := func(name string) string { return filepath.Join(workspace, name) }
	paths := hostile(t, workspace, outside)
	if err := errors.Join(
		os.WriteFile(filepath.Join(outside, "secret"), []byte("secret bytes"), 0o644),
		os.WriteFile(at("d/f"), []byte("inside"), 0o644),
		os.Symlink("d/f", at("inner")),
		unix.Mknod(at("null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))),
		unix.Mknod(at("disk"), unix.S_IFBLK|0o666, int(unix.Mkdev(7, 0))),
	); err != nil {
		t.Fatalf("this test needs root, for the devices: %v", err)
	}
	paths = append(paths, ".", "d", workspace, "inner", "null", "disk", "missing", "d/f/x", workspace+"x/f", workspace+"/../x", "/proc/self/root"+workspace+"/d/f", "/proc/self/cwd/d/f", "rootlink"+workspace+"/d/f", "d/f\x00")
	for _, era := range eras {
		c := l.client(era)
		for _, path := range paths {
			r := call(t, c, "export_artifact", object{"path": path})
			got, _ := json.Marshal(r)
			if !r.IsError || r.StructuredContent != nil || !strings.HasPrefix(text(t, r), "artifact export failed: ") {
				t.Errorf("%s: %.60q: %s", era, path, got)
			}
			for _, told := range []string{workspace, outside, "/etc", "/proc", "/dev", "secret"} {
				if bytes.Contains(got, []byte(told)) {
					t.Errorf("%s: %.60q is refused with %s: %s", era, path, told, got)
				}
			}
		}
		alike := text(t, call(t, c, "export_artifact", object{"path": "missing"}))
		if got := text(t, call(t, c, "export_artifact", object{"path": "d/missing"})); got != alike {
			t.Errorf("%q and %q", got, alike)
		}
	}
}

// R30: exactly the limit passes, one byte more doesn't, whatever the limit is.
func TestExportLimit(t *testing.T) {
	t.Parallel()
	const most = 8 << 20
	for name, limit := range map[string]int64{"default": 0, "lower": 1000, "higher": 9 << 20, "one byte": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, workspace := newRealWithin(t, agent.Limits{ArtifactBytes: limit})
			if limit == 0 {
				limit = most
			}
			for i, era := range eras {
				c := l.client(era)
				for d := int64(-1); d <= 1; d++ {
					f := fmt.Sprintf("f%d", i)
					data := bytes.Repeat([]byte{'x'}, int(limit+d))
					if err := os.WriteFile(filepath.Join(workspace, f), data, 0o644); err != nil {
						t.Fatal(err)
					}
					r := call(t, c, "export_artifact", object{"path": f})
					if d > 0 {
						wantFailure(t, fmt.Sprintf("%s: %d bytes", era, len(data)), r, "artifact export failed: ")
						continue
					}
					out := structured(t, r)
					if out["size"] != float64(limit+d) || (out["sha256"] == nil) != (limit+d > most) {
						t.Errorf("%s: %d bytes are %v", era, len(data), out)
					}
					if status, body := l.fetch(strings.TrimPrefix(out["uri"].(string), "artifact://berth/")); status != 200 || body != string(data) {
						t.Errorf("%s: read %d, %d of %d bytes", era, status, len(body), len(data))
					}
				}
			}
		})
	}
}

// R30: of 200 at once exactly 128 succeed, and dropped, they leave no descriptor.
func TestExportsAtOnce(t *testing.T) {
	t.Parallel()
	l, workspace, a := newRealAgent(t, localagent.Options{})
	if err := os.WriteFile(filepath.Join(workspace, "f"), []byte("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := descriptors(t, a, workspace)
	for _, era := range eras {
		c := l.client(era)
		var (
			mu     sync.Mutex
			tokens []string
			full   int
			all    sync.WaitGroup
		)
		for range 200 {
			all.Go(func() {
				r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "export_artifact", Arguments: object{"path": "f"}})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					t.Error(err)
				case !r.IsError:
					tokens = append(tokens, strings.TrimPrefix(r.StructuredContent.(object)["uri"].(string), "artifact://berth/"))
				case strings.Contains(text(t, r), "128 artifacts are held"):
					full++
				default:
					t.Error(text(t, r))
				}
			})
		}
		all.Wait()
		if len(tokens) != agent.MaxArtifacts || full != 200-agent.MaxArtifacts {
			t.Errorf("%s: %d succeeded and %d found no place", era, len(tokens), full)
		}
		for _, token := range tokens {
			if status, body := l.fetch(token); status != 200 || body != "content" {
				t.Errorf("%s: %d %q", era, status, body)
			}
			if err := a.Client.DropArtifact(t.Context(), a.Pod, token[strings.LastIndex(token, ".")+1:]); err != nil {
				t.Error(err)
			}
		}
		if after := descriptors(t, a, workspace); after != before {
			t.Errorf("%s: %d descriptors, %d before", era, after, before)
		}
	}
}

// R30: each kind of failure gives its place and its descriptors back.
func TestFailedExportsTakeNoPlace(t *testing.T) {
	t.Parallel()
	l, workspace, a := newRealAgent(t, localagent.Options{Limits: agent.Limits{ArtifactBytes: 1000}})
	at := func(name string) string { return filepath.Join(workspace, name) }
	if err := errors.Join(
		os.WriteFile(at("f"), make([]byte, 1000), 0o644), os.WriteFile(at("large"), make([]byte, 1001), 0o644),
		os.Mkdir(at("d"), 0o755), os.WriteFile(at("d/noise"), noise(70_000), 0o644), unix.Mkfifo(at("fifo"), 0o644), os.Symlink("/etc/passwd", at("link")),
	); err != nil {
		t.Fatal(err)
	}
	before := descriptors(t, a, workspace)
	c := l.client(eras[1])
	for range agent.MaxArtifacts + 1 {
		for _, arguments := range []object{
			{"path": "missing"}, {"path": "large"}, {"path": "d"}, {"path": "fifo"}, {"path": "link"}, {"path": "../x"}, {"path": "d", "archive": true},
		} {
			wantFailure(t, fmt.Sprint(arguments), call(t, c, "export_artifact", arguments), "artifact export failed: ")
		}
	}
	for i := range agent.MaxArtifacts {
		if r := call(t, c, "export_artifact", object{"path": "f"}); r.IsError {
			t.Fatalf("export %d: %s", i, text(t, r))
		}
	}
	wantFailure(t, "one more", call(t, c, "export_artifact", object{"path": "f"}), "artifact export failed: 128 artifacts are held")
	if after := descriptors(t, a, workspace) - before; after != agent.MaxArtifacts {
		t.Errorf("%d descriptors, want one of each artifact", after)
	}
}

// R31, R35: a result has no bytes of the file and no absolute path, and neither log
// has those, the name or the token.
func TestExportTellsNoBytes(t *testing.T) {
	t.Parallel()
	l, workspace, a := newRealAgent(t, localagent.Options{})
	content := "CONTENT-" + strings.Repeat("0123456789", 10)
	if err := os.WriteFile(filepath.Join(workspace, "hidden-name.txt"), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, era := range eras {
		c := l.client(era)
		r := call(t, c, "export_artifact", object{"path": filepath.Join(workspace, "hidden-name.txt")})
		all, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, told := range []string{content[:20], base64.StdEncoding.EncodeToString([]byte(content))[:20], workspace} {
			if bytes.Contains(all, []byte(told)) {
				t.Errorf("%s: the result has %q: %s", era, told, all)
			}
		}
		if diff := cmp.Diff([]string{"expires_in", "mimeType", "name", "sha256", "size", "uri"}, slices.Sorted(maps.Keys(structured(t, r)))); diff != "" {
			t.Errorf("%s: fields (-want +got):\n%s", era, diff)
		}
		token := strings.TrimPrefix(structured(t, r)["uri"].(string), "artifact://berth/")
		if status, _ := l.fetch(token); status != 200 {
			t.Errorf("%s: %d", era, status)
		}
		l.log.await(`"operation":"get_artifact"`)
		for where, log := range map[string]string{"gateway's": l.log.String(), "agent's": a.Log.String()} {
			for _, told := range []string{content[:20], workspace + "/hidden", "hidden-name", token, token[strings.LastIndex(token, ".")+1:]} {
				if strings.Contains(log, told) {
					t.Errorf("%s: the %s log has %q", era, where, told)
				}
			}
		}
	}
}
