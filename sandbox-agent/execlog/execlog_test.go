package execlog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/sandbox-agent/artifact"
	"github.com/berth-dev/berth/sandbox-agent/wire"
	"github.com/berth-dev/berth/test/clock"
)

type fixture struct {
	*Store
	artifacts *artifact.Store
	clock     *clock.Clock
	workspace string
}

func newFixture(t *testing.T, workspace string) fixture {
	t.Helper()
	c := clock.New()
	artifacts, err := artifact.NewStore(workspace, []string{workspace}, c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(workspace, artifacts, c)
	if err != nil {
		t.Fatal(err)
	}
	return fixture{s, artifacts, c, workspace}
}

// keep makes the log of a command that wrote data to stdout.
func (f fixture) keep(limit int64, data string) (*wire.LogFile, string) {
	c := f.Command(limit)
	l := c.Open(Stdout)
	for rest := data; rest != ""; {
		n := min(len(rest), 7)
		l.Append([]byte(rest[:n]))
		rest = rest[n:]
	}
	found, notice := c.Finish()
	if found == nil {
		return nil, notice
	}
	return found.Stdout, notice
}

func (f fixture) read(t *testing.T, l *wire.LogFile) string {
	t.Helper()
	r, err := f.artifacts.Open(l.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (f fixture) files(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(f.workspace, ".berth", "logs"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A command may be in any directory when it looks for a log, so texts give its
// absolute name.
func TestPathIsAbsoluteWhereTheWorkspaceHasAPlainName(t *testing.T) {
	parent, err := os.MkdirTemp("/tmp", "berth") // t.TempDir's names are long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(parent) })
	for name, absolute := range map[string]bool{"w": true, strings.Repeat("w", 70): false, "two\nlines": false} {
		workspace := filepath.Join(parent, name)
		if err := os.Mkdir(workspace, 0o700); err != nil {
			t.Fatal(err)
		}
		l := newFixture(t, workspace).Command(1 << 20).Open(Stdout)
		l.Append([]byte("x"))
		relative := filepath.Join(".berth", "logs", l.name)
		want := relative
		if absolute {
			want = filepath.Join(workspace, relative)
		}
		if got := l.Path(); got != want {
			t.Errorf("workspace %q: path %q, want %q", name, got, want)
		}
		if found, _ := l.finish(); found == nil || found.Path != relative {
			t.Errorf("workspace %q: wire path %+v, want %q", name, found, relative)
		}
	}
}

func TestLogIsAFileAndAnArtifact(t *testing.T) {
	f := newFixture(t, t.TempDir())
	data := strings.Repeat("a\x00\xff\r\n", 100)
	l, notice := f.keep(1<<20, data)
	if notice != "" || !wire.ValidArtifactID(l.ID) {
		t.Fatalf("log %+v, notice %q", l, notice)
	}
	if diff := cmp.Diff(&wire.LogFile{ID: l.ID, Path: l.Path, Size: int64(len(data)), ExpiresIn: 3600}, l); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	path := filepath.Join(f.workspace, l.Path)
	if got, err := os.ReadFile(path); err != nil || string(got) != data {
		t.Errorf("file: %q, %v", got, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 || !ours.MatchString(info.Name()) {
		t.Errorf("want a file of mode 0600, got %v, %v", info, err)
	}
	if got := f.read(t, l); got != data {
		t.Errorf("artifact: %q", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got := f.read(t, l); got != data {
		t.Errorf("artifact of an unlinked file: %q", got)
	}
	if got, err := os.ReadFile(filepath.Join(f.workspace, ".berth", ".gitignore")); err != nil || string(got) != "*\n" {
		t.Errorf(".gitignore: %q, %v", got, err)
	}
}

func TestNothingIsMadeWithoutALog(t *testing.T) {
	f := newFixture(t, t.TempDir())
	if found, notice := f.Command(1).Finish(); found != nil || notice != "" {
		t.Errorf("got %+v, %q", found, notice)
	}
	var none *Command
	if found, notice := none.Finish(); found != nil || notice != "" {
		t.Errorf("no command: got %+v, %q", found, notice)
	}
	if entries, err := os.ReadDir(f.workspace); err != nil || len(entries) != 0 {
		t.Errorf("in the workspace: %v, %v", entries, err)
	}
}

// The limit holds for all logs together: at it, one below and one above.
func TestLimit(t *testing.T) {
	const limit = 100
	for _, written := range []int{limit - 1, limit, limit + 1} {
		f := newFixture(t, t.TempDir())
		data := strings.Repeat("x", written)
		l, notice := f.keep(limit, data)
		truncated := written > limit
		if l.Size != int64(min(written, limit)) || l.Truncated != truncated || f.read(t, l) != data[:l.Size] {
			t.Errorf("%d bytes: %+v", written, l)
		}
		if truncated != strings.Contains(notice, "ends after 100 bytes") {
			t.Errorf("%d bytes: notice %q", written, notice)
		}
		if f.used != l.Size {
			t.Errorf("%d bytes are counted, of %d", f.used, l.Size)
		}
	}
}

func TestTheOldestMakeRoom(t *testing.T) {
	f := newFixture(t, t.TempDir())
	var kept []*wire.LogFile
	for i := range 4 {
		l, _ := f.keep(100, strings.Repeat(fmt.Sprint(i), 40))
		kept = append(kept, l)
		f.clock.Advance(time.Second)
	}
	for i, l := range kept {
		_, err := f.artifacts.Open(l.ID)
		_, gone := os.Stat(filepath.Join(f.workspace, l.Path))
		if swept := i < 2; swept != errors.Is(err, artifact.ErrNotFound) || swept != errors.Is(gone, os.ErrNotExist) {
			t.Errorf("log %d: swept %v, artifact %v, file %v", i, swept, err, gone)
		}
	}
	if f.used != 80 || f.clock.Waiting() != 1 {
		t.Errorf("%d bytes are counted, %d timers wait", f.used, f.clock.Waiting())
	}
	l, _ := f.keep(50, strings.Repeat("z", 50)) // a limit that was lowered
	if f.used != 50 || l.Truncated {
		t.Errorf("%d bytes are counted, of %+v", f.used, l)
	}
}

// Two streams of one command share the limit, and none sweeps the other.
func TestStreamsShareTheLimit(t *testing.T) {
	f := newFixture(t, t.TempDir())
	c := f.Command(10)
	c.Open(Stdout).Append([]byte("1234567"))
	c.Open(Stderr).Append([]byte("abcdefg"))
	found, notice := c.Finish()
	if found.Stdout.Size != 7 || found.Stderr.Size != 3 || !found.Stderr.Truncated || f.read(t, found.Stderr) != "abc" {
		t.Errorf("got %+v and %+v, notice %q", found.Stdout, found.Stderr, notice)
	}
	if strings.TrimSuffix(found.Stdout.Path, "stdout") != strings.TrimSuffix(found.Stderr.Path, "stderr") || found.Stdout.ID == found.Stderr.ID {
		t.Errorf("want one name and two ids: %+v and %+v", found.Stdout, found.Stderr)
	}
}

func TestLogsAreCounted(t *testing.T) {
	f := newFixture(t, t.TempDir())
	for range maxLogs + 1 {
		f.keep(1<<20, "x")
	}
	if got := len(f.files(t)); got != maxLogs || f.used != maxLogs {
		t.Errorf("want %d logs, got %d of %d bytes", maxLogs, got, f.used)
	}
}

func TestExpiry(t *testing.T) {
	f := newFixture(t, t.TempDir())
	first, _ := f.keep(100, "first")
	f.clock.Advance(time.Minute)
	second, _ := f.keep(100, "second")
	if f.clock.Waiting() != 1 {
		t.Errorf("want one timer, got %d", f.clock.Waiting())
	}
	f.clock.Advance(Lifetime - time.Minute - time.Nanosecond)
	r, err := f.artifacts.Open(first.ID)
	if err != nil {
		t.Fatalf("in its last nanosecond: %v", err)
	}
	f.clock.Advance(time.Nanosecond)
	if _, err := f.artifacts.Open(first.ID); !errors.Is(err, artifact.ErrNotFound) {
		t.Errorf("expired: want ErrNotFound, got %v", err)
	}
	if data, err := io.ReadAll(r); err != nil || string(data) != "first" {
		t.Errorf("a read under way at expiry: %q, %v", data, err)
	}
	r.Close()
	if got := f.read(t, second); got != "second" {
		t.Errorf("the second: %q", got)
	}
	f.clock.Advance(time.Minute)
	if got := f.files(t); len(got) != 0 || f.used != 0 || f.clock.Waiting() != 0 {
		t.Errorf("want nothing left, got %v, %d bytes, %d timers", got, f.used, f.clock.Waiting())
	}
	if err := f.artifacts.Close(); err != nil { // waits for descriptors that are left
		t.Error(err)
	}
}

func TestDrop(t *testing.T) {
	f := newFixture(t, t.TempDir())
	l, _ := f.keep(100, "x")
	if err := f.artifacts.Drop(l.ID); err != nil {
		t.Fatal(err)
	}
	if err := f.artifacts.Drop(l.ID); !errors.Is(err, artifact.ErrNotFound) {
		t.Errorf("again: want ErrNotFound, got %v", err)
	}
	if got := f.files(t); len(got) != 0 || f.used != 0 {
		t.Errorf("want nothing left, got %v, %d bytes", got, f.used)
	}
}

// Logs take no artifact's place.
func TestLogsTakeNoSlots(t *testing.T) {
	f := newFixture(t, t.TempDir())
	f.keep(100, "x")
	if err := os.WriteFile(filepath.Join(f.workspace, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range wire.MaxArtifacts {
		if _, err := f.artifacts.Take(t.Context(), artifact.Request{Path: "f", Limit: 1, Total: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if l, notice := f.keep(100, "y"); l == nil {
		t.Errorf("no log: %s", notice)
	}
}

const smallDisk = "BERTH_TEST_SMALL_DISK"
