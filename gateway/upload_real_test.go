package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	agent "github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/test/localagent"
	"github.com/berth-dev/berth/test/uploadcases"
)

// uploaded are the names in a workspace's uploads.
func uploaded(t *testing.T, workspace string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(workspace, "uploads"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// clearUploads empties uploads.
func clearUploads(t *testing.T, workspace string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(workspace, "uploads")); err != nil {
		t.Fatal(err)
	}
}

// onBothPaths runs a test where files are published by link, and where the kernel
// refuses links.
func onBothPaths(t *testing.T, test func(t *testing.T, l *live, workspace string)) {
	t.Helper()
	for name, noLinks := range map[string]bool{"by link": false, "without links": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, workspace, a := newRealAgent(t, localagent.Options{NoLinks: noLinks})
			result, err := a.Run(t.Context(), agent.ExecRequest{Command: ": >a && ln a b; code=$?; rm -f a b; exit $code"})
			if err != nil || (result.ExitCode != 0) != noLinks {
				t.Fatalf("a link: %+v, %v", result, err)
			}
			test(t, l, workspace)
		})
	}
}

// R28: the table of names, whole, with the bytes, and nothing beside the file.
func TestUploadedNames(t *testing.T) {
	t.Parallel()
	onBothPaths(t, func(t *testing.T, l *live, workspace string) {
		for _, c := range uploadcases.Names {
			clearUploads(t, workspace)
			status, f, answer := l.upload("alice", "s", c.Raw, []byte(c.Case))
			if status != http.StatusCreated || f.Name != c.Want || f.Path != filepath.Join(workspace, "uploads", c.Want) || f.Size != int64(len(c.Case)) {
				t.Errorf("%s: %d %s, want %q", c.Case, status, answer, c.Want)
				continue
			}
			if data, err := os.ReadFile(f.Path); err != nil || string(data) != c.Case {
				t.Errorf("%s: holds %q, %v", c.Case, data, err)
			}
			if got := uploaded(t, workspace); !slices.Equal(got, []string{c.Want}) {
				t.Errorf("%s: %q are there", c.Case, got)
			}
		}
		clearUploads(t, workspace)
		for _, name := range uploadcases.Refused() {
			if status, _, answer := l.upload("alice", "s", name, []byte("x")); status != http.StatusBadRequest {
				t.Errorf("%q: %d %s, want 400", name, status, answer)
			}
		}
		if got := uploaded(t, workspace); len(got) != 0 {
			t.Errorf("%q was made", got)
		}
	})
}

// R28: what is there is not overwritten, by the table.
func TestUploadedCollisions(t *testing.T) {
	t.Parallel()
	onBothPaths(t, func(t *testing.T, l *live, workspace string) {
		for _, c := range uploadcases.Collisions {
			clearUploads(t, workspace)
			if c.N < uploadcases.LastTry {
				for range c.N - 1 {
					l.upload("alice", "s", c.Name, []byte("before"))
				}
				if _, f, answer := l.upload("alice", "s", c.Name, []byte("the last")); f.Name != c.Want {
					t.Errorf("%s: %s, want %q", c.Case, answer, c.Want)
				}
				if got := uploaded(t, workspace); len(got) != c.N {
					t.Errorf("%s: %q are there, want %d", c.Case, got, c.N)
				}
			}
		}
	})
}

// R28: there are up to 1000 of a name; then it is 409, until one is removed.
func TestUploadOfTheThousandth(t *testing.T) {
	t.Parallel()
	onBothPaths(t, func(t *testing.T, l *live, workspace string) {
		at := func(n int) string {
			name := "a.tar.gz"
			if n > 1 {
				name = fmt.Sprintf("a_%d.tar.gz", n)
			}
			return filepath.Join(workspace, "uploads", name)
		}
		clearUploads(t, workspace)
		if err := os.Mkdir(filepath.Join(workspace, "uploads"), 0o755); err != nil {
			t.Fatal(err)
		}
		for n := 1; n < uploadcases.LastTry; n++ {
			if err := os.WriteFile(at(n), []byte("before"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if status, f, answer := l.upload("alice", "s", "a.tar.gz", []byte("new")); status != 201 || f.Path != at(uploadcases.LastTry) {
			t.Errorf("the 1000th: %d %s", status, answer)
		}
		if status, _, answer := l.upload("alice", "s", "a.tar.gz", []byte("new")); status != http.StatusConflict || !strings.Contains(answer, `"code":"name_taken"`) {
			t.Errorf("one more: %d %s, want 409", status, answer)
		}
		if err := os.Remove(at(500)); err != nil {
			t.Fatal(err)
		}
		if status, f, answer := l.upload("alice", "s", "a.tar.gz", []byte("new")); status != 201 || f.Path != at(500) {
			t.Errorf("with one removed: %d %s", status, answer)
		}
		for n := range uploadcases.LastTry {
			want := "before"
			if n+1 == 500 || n+1 == uploadcases.LastTry {
				want = "new"
			}
			if data, err := os.ReadFile(at(n + 1)); err != nil || string(data) != want {
				t.Errorf("%s holds %q, %v", at(n+1), data, err)
			}
		}
		if got := uploaded(t, workspace); len(got) != uploadcases.LastTry {
			t.Errorf("%d files are there, want 1000", len(got))
		}
	})
}

// R29: none by default, and then one byte more is refused, whether it was announced
// or not, leaving nothing.
func TestUploadLimit(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	l, workspace := newRealWithin(t, agent.Limits{UploadBytes: limit})
	for _, announced := range []bool{true, false} {
		for size, want := range map[int]int{limit - 1: 201, limit: 201, limit + 1: 413, 2 * limit: 413} {
			var body io.Reader = bytes.NewReader(make([]byte, size))
			if !announced {
				body = io.MultiReader(body) // whose length nobody can tell
			}
			clearUploads(t, workspace)
			resp, answer := l.do(http.MethodPost, "/sessions/s/files?name=f", "alice", body, nil)
			left := uploaded(t, workspace)
			if resp.StatusCode != want || (want == 201) != slices.Equal(left, []string{"f"}) || want == 413 && len(left) != 0 {
				t.Errorf("%d bytes, announced %v: %d %s, %q are there; want %d", size, announced, resp.StatusCode, answer, left, want)
			}
		}
	}
}

// R28: a full disk is 507, and nothing is left.
func TestUploadToAFullDisk(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount")
	}
	workspace := t.TempDir()
	l, _, a := newRealAgent(t, localagent.Options{Workspace: workspace, Within: []string{"mount -t tmpfs -o size=1m none " + workspace}})
	for range 3 {
		if status, _, answer := l.upload("alice", "s", "f", make([]byte, 8<<20)); status != http.StatusInsufficientStorage || !strings.Contains(answer, `"code":"no_space"`) {
			t.Errorf("%d %s, want 507", status, answer)
		}
	}
	if left, err := a.Output(t.Context(), "ls -A uploads"); left != "" || err != nil {
		t.Errorf("%q is left, %v", left, err)
	}
	if status, _, answer := l.upload("alice", "s", "f", make([]byte, 512<<10)); status != http.StatusCreated {
		t.Errorf("what fits: %d %s", status, answer)
	}
}

// R28: the umask that the agent was started with holds.
func TestUploadKeepsToTheUmask(t *testing.T) {
	t.Parallel()
	for mask, want := range map[string][2]os.FileMode{"022": {0o755, 0o644}, "077": {0o700, 0o600}, "002": {0o775, 0o664}} {
		l, workspace, _ := newRealAgent(t, localagent.Options{Within: []string{"umask " + mask}})
		if status, _, answer := l.upload("alice", "s", "f", []byte("x")); status != http.StatusCreated {
			t.Fatalf("%d %s", status, answer)
		}
		for i, name := range []string{"uploads", "uploads/f"} {
			if is, err := os.Stat(filepath.Join(workspace, name)); err != nil || is.Mode().Perm() != want[i] {
				t.Errorf("umask %s: %s is %v, %v", mask, name, is.Mode(), err)
			}
		}
	}
}

// R28: temporary files that nobody wrote to for an hour are removed, and nothing
// else is.
func TestUploadSweepsWhatIsStale(t *testing.T) {
	t.Parallel()
	l, workspace := newReal(t)
	at := func(name string) string { return filepath.Join(workspace, "uploads", name) }
	hex := strings.Repeat("0f", 8)
	aged := map[string]time.Duration{
		".a.upload-" + hex: 61 * time.Minute, ".b.upload-" + hex: 59 * time.Minute, ".c.upload-0f": 61 * time.Minute,
		".d.write-" + hex: 61 * time.Minute, ".upload-" + hex: 61 * time.Minute, "e.upload-" + hex: 61 * time.Minute, ".bashrc": 61 * time.Minute, "f": 61 * time.Minute,
	}
	if err := errors.Join(os.MkdirAll(at(".dir.upload-"+hex), 0o755), os.Symlink("f", at(".link.upload-"+hex)), unix.Mkfifo(at(".fifo.upload-"+hex), 0o644)); err != nil {
		t.Fatal(err)
	}
	for name, age := range aged {
		at := at(name)
		if err := errors.Join(os.WriteFile(at, nil, 0o644), os.Chtimes(at, time.Time{}, time.Now().Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".dir.upload-" + hex, ".fifo.upload-" + hex} {
		if err := os.Chtimes(at(name), time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if status, _, answer := l.upload("alice", "s", "new", nil); status != http.StatusCreated {
		t.Fatalf("%d %s", status, answer)
	}
	want := []string{".b.upload-" + hex, ".bashrc", ".c.upload-0f", ".dir.upload-" + hex, ".fifo.upload-" + hex, ".link.upload-" + hex, ".upload-" + hex, "e.upload-" + hex, "f", "new"}
	slices.Sort(want)
	if diff := cmp.Diff(want, uploaded(t, workspace)); diff != "" {
		t.Errorf("what is there (-want +got):\n%s", diff)
	}
}

// R28: half a file is hidden, and once its caller is gone nothing of it is left but
// one line of the agent's log, which says what there is to say.
func TestUploadThatBreaksOff(t *testing.T) {
	t.Parallel()
	l, workspace, a := newRealAgent(t, localagent.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	body, sender := io.Pipe()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/sessions/s/files?name="+url.QueryEscape("a\nb.txt"), body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer alice")
	done := make(chan error, 1)
	go func() {
		resp, err := http.DefaultClient.Do(r)
		if err == nil {
			resp.Body.Close()
		}
		done <- err
	}()
	for range 2 { // the second piece is taken once the agent has begun
		if _, err := sender.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	for len(uploaded(t, workspace)) == 0 {
		if t.Context().Err() != nil {
			t.Fatal("the agent never began")
		}
	}
	if got := uploaded(t, workspace); len(got) != 1 || !regexp.MustCompile(`^\.a_b\.txt\.upload-[0-9a-f]{16}$`).MatchString(got[0]) {
		t.Errorf("%q are there while it is sent", got)
	}
	cancel()
	sender.CloseWithError(context.Canceled) // net/http waits for a Read under way
	if err := <-done; err == nil {
		t.Fatal("half a file was taken")
	}
	if !a.Log.Await(`"msg":"Upload failed"`) {
		t.Fatal("the agent ended")
	}
	if got := uploaded(t, workspace); len(got) != 0 {
		t.Errorf("%q is left", got)
	}
	wantFailureLine(t, a.Log.String())
}

// wantFailureLine wants one line in an agent's log of an upload that failed.
func wantFailureLine(t *testing.T, log string) {
	t.Helper()
	failures := failedUploads(log)
	if len(failures) != 1 {
		t.Fatalf("%d lines, want one: %s", len(failures), log)
	}
	f := failures[0]
	if f["level"] != "WARN" || f["name"] != "a_b.txt" || f["session"] == "" || f["bytes"].(float64) <= 0 || f["duration"] == "" || f["status"] != 400. {
		t.Errorf("the line is %v", f)
	}
}
