package gateway_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// hostile fills a workspace with what leads out of it, and returns the paths.
func hostile(t *testing.T, workspace, outside string) []string {
	t.Helper()
	at := func(name string) string { return filepath.Join(workspace, name) }
	socket, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	if err := errors.Join(
		os.Mkdir(at("d"), 0o755),
		os.Symlink(filepath.Join(outside, "secret"), at("link")),
		os.Symlink(outside, at("dirlink")),
		os.Symlink("../../"+filepath.Base(outside)+"/secret", at("d/up")),
		os.Symlink("/proc/self/environ", at("proc")),
		os.Symlink("/proc/self/root", at("rootlink")),
		os.Symlink("loop", at("loop")),
		os.Symlink("/dev/zero", at("zero")),
		unix.Mkfifo(at("fifo"), 0o644),
	); err != nil {
		t.Fatal(err)
	}
	return []string{
		"..", "../" + filepath.Base(outside) + "/secret", "d/../../x", "/etc/passwd", "/", filepath.Join(outside, "secret"),
		"link", "dirlink", "dirlink/secret", "dirlink/new", "d/up", "proc", "rootlink/etc/passwd", "loop", "loop/x", "zero", "fifo", "socket",
		"/proc/self/environ", "/proc/1/root/etc/passwd", "/dev/null", "/dev/fd/0", "fifo/x", "~/x/../../../etc/passwd",
		"a\x00b", "/etc/passwd\x00", strings.Repeat("ä", 4096), strings.Repeat("a", 256), strings.Repeat("../", 1000) + "etc/passwd",
	}
}

// Nothing but the workspace is reached, through no tool and in no way, and no
// refusal shows what is there.
func TestFileToolsReachNothingElse(t *testing.T) {
	t.Parallel()
	l, workspace := newReal(t)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret bytes"), 0o644); err != nil {
		t.Fatal(err)
	}
	paths := hostile(t, workspace, outside)
	for _, era := range eras {
		c := l.client(era)
		for _, path := range paths {
			for tool, arguments := range map[string]object{
				"read_file":       {"path": path},
				"write_file":      {"path": path, "content": "written"},
				"edit_file":       {"path": path, "edits": []object{{"old": "secret", "new": "found"}}},
				"list_files":      {"path": path},
				"export_artifact": {"path": path, "archive": true},
			} {
				result := call(t, c, tool, arguments)
				got := text(t, result)
				if !result.IsError || result.StructuredContent != nil {
					t.Errorf("%s %.80q: %.200s", tool, path, got)
				}
				if strings.Contains(got, "secret bytes") || strings.Contains(got, workspace) || !strings.HasPrefix(path, outside) && strings.Contains(got, outside) {
					t.Errorf("%s %.80q shows what is there: %s", tool, path, got)
				}
			}
			if r := call(t, c, "read_file", object{"path": path, "byte_offset": 0}); !r.IsError {
				t.Errorf("bytes of %.80q: %.200s", path, text(t, r))
			}
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside there are %v, %v", entries, err)
	}
	if data, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(data) != "secret bytes" {
		t.Errorf("the file outside is %q, %v", data, err)
	}
}

// exchange gives two names each what the other was.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// swapping exchanges two names over and over, until it is stopped.
func swapping(t *testing.T, a, b string) (stop func()) {
	end, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-end:
				ended <- nil
				return
			default:
			}
			if err := exchange(a, b); err != nil {
				ended <- err
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(end)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A directory that is swapped for a link while a path is followed leads nowhere
// else: what is found is what was inside, or nothing.
func TestFileToolsWhileALinkIsSwapped(t *testing.T) {
	t.Parallel()
	l, workspace := newReal(t)
	outside := t.TempDir()
	inside, link := filepath.Join(workspace, "d"), filepath.Join(workspace, "link")
	if err := errors.Join(
		os.WriteFile(filepath.Join(outside, "f"), []byte("outside"), 0o644),
		os.Mkdir(inside, 0o755),
		os.WriteFile(filepath.Join(inside, "f"), []byte("inside"), 0o644),
		os.Symlink(outside, link),
	); err != nil {
		t.Fatal(err)
	}
	c := l.client(eras[1])
	round := func(i int) (refused int) {
		for tool, arguments := range map[string]object{
			"read_file":       {"path": "d/f"},
			"write_file":      {"path": fmt.Sprintf("d/new%d", i), "content": "x"},
			"edit_file":       {"path": "d/f", "edits": []object{{"old": "side", "new": "SIDE"}, {"old": "SIDE", "new": "side"}}},
			"list_files":      {"path": "d", "limit": 1},
			"export_artifact": {"path": "d/f"},
		} {
			result := call(t, c, tool, arguments)
			if result.IsError {
				refused++
				continue
			}
			if size, ok := structured(t, result)["size"]; ok && tool != "write_file" && size != float64(len("inside")) {
				t.Fatalf("%s: %v", tool, result.StructuredContent)
			}
		}
		return refused
	}
	if refused := round(0); refused != 0 {
		t.Errorf("%d tools were refused the directory", refused)
	}
	if err := exchange(inside, link); err != nil {
		t.Fatal(err)
	}
	if refused := round(1); refused != 5 {
		t.Errorf("%d tools were refused the link, want all", refused)
	}
	stop := swapping(t, inside, link)
	defer stop()
	for i := range 150 {
		round(2 + i)
	}
	stop()
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside there are %v, %v", entries, err)
	}
	if data, err := os.ReadFile(filepath.Join(outside, "f")); err != nil || string(data) != "outside" {
		t.Errorf("the file outside is %q, %v", data, err)
	}
}

// A file that also is one outside, by a hard link, is not written through.
func TestWriteFileReplacesAHardLink(t *testing.T) {
	t.Parallel()
	l, workspace := newReal(t)
	outside := filepath.Join(filepath.Dir(workspace), "outside")
	if err := os.WriteFile(outside, []byte("as it was"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := l.client(eras[1])
	for i, tool := range []string{"write_file", "edit_file"} {
		name := fmt.Sprintf("hard%d", i)
		if err := os.Link(outside, filepath.Join(workspace, name)); err != nil {
			t.Fatal(err)
		}
		arguments := object{"path": name, "content": "new"}
		if tool == "edit_file" {
			arguments = object{"path": name, "edits": []object{{"old": "was", "new": "is"}}}
		}
		call(t, c, tool, arguments)
		if data, err := os.ReadFile(outside); err != nil || string(data) != "as it was" {
			t.Errorf("%s: the file outside is %q, %v", tool, data, err)
		}
	}
}
