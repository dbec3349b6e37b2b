package gateway_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"

	agent "github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/test/localagent"
)

// With the agent as it is shipped: what one tool writes, the others and commands
// find, to the byte.
func TestFilesOfARealAgent(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	l, workspace := newRealWith(t, localagent.Options{FileRoots: []string{root}})
	for i, era := range eras {
		c := l.client(era)
		name := fmt.Sprintf("src/pkg%d/main.py", i)
		if out := structured(t, call(t, c, "write_file", object{"path": name, "content": "x = 1\ny = 2\nz = x\n"})); out["created"] != true || out["path"] != name {
			t.Errorf("written: %v", out)
		}
		if err := os.Chmod(filepath.Join(workspace, name), 0o750); err != nil {
			t.Fatal(err)
		}
		edited := structured(t, call(t, c, "edit_file", object{"path": name, "edits": []object{{"old": "x", "new": "n", "replace_all": true}, {"old": "y = 2\n", "new": ""}}}))
		if diff := cmp.Diff(object{"path": name, "size": 12., "replacements": 3., "edits": []any{
			object{"replacements": 2., "line": 1.}, object{"replacements": 1., "line": 2.},
		}}, edited); diff != "" {
			t.Errorf("edited (-want +got):\n%s", diff)
		}
		read := call(t, c, "read_file", object{"path": filepath.Join(workspace, name), "offset": 2})
		if got := texts(t, read); len(got) != 2 || got[0] != "z = n\n" || got[1] != "Line 2 of 2." {
			t.Errorf("read %q", got)
		}
		if out := structured(t, bash(t, c, "cat "+name+"; stat -c %a "+name)); out["stdout"] != "n = 1\nz = n\n750\n" {
			t.Errorf("a command finds %v", out)
		}
		list := structured(t, call(t, c, "list_files", object{"glob": fmt.Sprintf("**/pkg%d/*.py", i)}))["entries"].([]any)
		if len(list) != 1 || list[0].(object)["path"] != name || list[0].(object)["size"] != 12. {
			t.Errorf("list %v", list)
		}
		inRoot := filepath.Join(root, fmt.Sprintf("d%d", i), "f")
		if r := call(t, c, "write_file", object{"path": inRoot, "content": "AAEC/w==", "encoding": "base64"}); r.IsError {
			t.Errorf("a root: %s", text(t, r))
		}
		if got := structured(t, call(t, c, "read_file", object{"path": inRoot, "byte_offset": 1}))["content"]; got != "AQL/" {
			t.Errorf("a root's file is %v", got)
		}
	}
	if data, err := os.ReadFile(filepath.Join(workspace, "src/pkg0/main.py")); err != nil || string(data) != "n = 1\nz = n\n" {
		t.Errorf("the file is %q, %v", data, err)
	}
}

// Refusals say what, where, and what to do; and change nothing.
func TestFileRefusalsOfARealAgent(t *testing.T) {
	t.Parallel()
	l, workspace := newReal(t)
	const content = "n = 1\nz = n\n"
	if err := errors.Join(
		os.WriteFile(filepath.Join(workspace, "main.py"), []byte(content), 0o644),
		os.WriteFile(filepath.Join(workspace, "f"), []byte{0, 1, 2, 0xff}, 0o644),
	); err != nil {
		t.Fatal(err)
	}
	c := l.client(eras[1])
	for what, tc := range map[string]struct {
		tool      string
		arguments object
		want      []string
	}{
		"no file":         {"read_file", object{"path": "man.py"}, []string{"file read failed: ", "man.py", "main.py"}},
		"a picture":       {"read_file", object{"path": "f"}, []string{"application/octet-stream, 4 bytes", "with byte_offset", "export_artifact"}},
		"beyond the end":  {"read_file", object{"path": "main.py", "offset": 3}, []string{"has 2 lines: there is no line 3"}},
		"beyond its size": {"read_file", object{"path": "main.py", "byte_offset": 13}, []string{"file read failed: "}},
		"no match":        {"edit_file", object{"path": "main.py", "edits": []object{{"old": "z = n", "new": "!"}, {"old": "absent", "new": ""}}}, []string{"edit 2", "not in"}},
		"two matches":     {"edit_file", object{"path": "main.py", "edits": []object{{"old": "n", "new": "m"}}}, []string{"2 times", "replace_all"}},
		"list of a file":  {"list_files", object{"path": "main.py"}, []string{"is a file, no directory"}},
		"a bad pattern":   {"list_files", object{"glob": "[a"}, []string{"file list failed: "}},
	} {
		result := call(t, c, tc.tool, tc.arguments)
		wantFailure(t, what, result, "file ")
		for _, want := range tc.want {
			if got := text(t, result); !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q in it", what, got, want)
			}
		}
	}
	if data, err := os.ReadFile(filepath.Join(workspace, "main.py")); err != nil || string(data) != content {
		t.Errorf("edits that failed left %q, %v", data, err)
	}
}

// The session's limit of uploads is that of the file tools.
func TestFilesWithinTheSessionsLimit(t *testing.T) {
	t.Parallel()
	l, workspace := newRealWith(t, localagent.Options{Limits: agent.Limits{UploadBytes: 5}})
	c := l.client(eras[0])
	for content, fits := range map[string]bool{"1234": true, "12345": true, "123456": false} {
		if r := call(t, c, "write_file", object{"path": "f", "content": content}); r.IsError == fits {
			t.Errorf("%d bytes: %s", len(content), text(t, r))
		}
	}
	if r := call(t, c, "write_file", object{"path": "f", "content": "12345"}); r.IsError {
		t.Fatal(text(t, r))
	}
	wantFailure(t, "an edit to six bytes", call(t, c, "edit_file", object{"path": "f", "edits": []object{{"old": "5", "new": "56"}}}), "file edit failed: ")
	if data, err := os.ReadFile(filepath.Join(workspace, "f")); err != nil || string(data) != "12345" {
		t.Errorf("the file is %q, %v", data, err)
	}
}

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

// A device within reach is listed, and neither read nor written.
func TestFileToolsRefuseADevice(t *testing.T) {
	t.Parallel()
	l, _ := newRealWith(t, localagent.Options{FileRoots: []string{"/dev"}})
	c := l.client(eras[1])
	for tool, arguments := range map[string]object{
		"read_file":  {"path": "/dev/zero"},
		"write_file": {"path": "/dev/zero", "content": "x"},
		"edit_file":  {"path": "/dev/zero", "edits": []object{{"old": "\x00", "new": "x"}}},
	} {
		wantFailure(t, tool, call(t, c, tool, arguments), "file "+strings.TrimSuffix(tool, "_file")+` failed: "/dev/zero" is no regular file, but a device`)
	}
	entries := structured(t, call(t, c, "list_files", object{"path": "/dev", "glob": "zero"}))["entries"].([]any)
	if len(entries) != 1 || entries[0].(object)["type"] != "device" || entries[0].(object)["path"] != "/dev/zero" {
		t.Errorf("list %v", entries)
	}
}

// Names that only look dangerous are names.
func TestFilesOfStrangeNames(t *testing.T) {
	t.Parallel()
	l, _ := newReal(t)
	long := strings.Repeat(strings.Repeat("a", 254)+"/", 16) + strings.Repeat("b", 16) // 4,096 bytes
	for _, path := range []string{"..name", "...", "new\nline", "rtl\u202etxt.exe", " ", "a b/ c", "-rf", "$(id)", "%2e%2e", "ünï", "a\\b", "file:///etc/passwd", "x?line=1&path=y#z", long} {
		for _, era := range eras {
			c := l.client(era)
			if r := call(t, c, "write_file", object{"path": path, "content": "1\n" + path}); r.IsError {
				t.Errorf("write %.80q: %s", path, text(t, r))
				continue
			}
			if r := call(t, c, "edit_file", object{"path": path, "edits": []object{{"old": "1\n", "new": ""}}}); r.IsError {
				t.Errorf("edit %.80q: %s", path, text(t, r))
			}
			if got := text(t, call(t, c, "read_file", object{"path": path})); got != path {
				t.Errorf("read %.80q: %.200q", path, got)
			}
		}
	}
	found := map[string]bool{}
	for _, e := range structured(t, call(t, l.client(eras[1]), "list_files", object{}))["entries"].([]any) {
		found[e.(object)["path"].(string)] = true
	}
	if !found["new\nline"] || !found["rtl\u202etxt.exe"] || !found["..name"] {
		t.Errorf("list %v", found)
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

// A directory is exported as an archive, or not at all.
func TestExportOfADirectory(t *testing.T) {
	t.Parallel()
	l, workspace := newReal(t)
	if err := errors.Join(os.MkdirAll(filepath.Join(workspace, "d/sub"), 0o755), os.WriteFile(filepath.Join(workspace, "d/sub/f"), []byte("content"), 0o640)); err != nil {
		t.Fatal(err)
	}
	forEachEra(t, func(t *testing.T, era string) {
		c := l.client(era)
		refused := call(t, c, "export_artifact", object{"path": "d"})
		wantFailure(t, "a directory", refused, "artifact export failed: ")
		if !strings.Contains(text(t, refused), "archive: true") {
			t.Errorf("a directory: %q, want what to do", text(t, refused))
		}
		out := structured(t, call(t, c, "export_artifact", object{"path": "d", "archive": true}))
		if out["name"] != "d.tar.gz" || out["mimeType"] != "application/gzip" || out["sha256"] == nil {
			t.Errorf("exported %v", out)
		}
		read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: out["uri"].(string)})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"d/sub/f": "content"}, unpack(t, read.Contents[0].Blob)); diff != "" {
			t.Errorf("files of the archive (-want +got):\n%s", diff)
		}
	})
}

// unpack gives the files of a .tar.gz.
func unpack(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for entries := tar.NewReader(unzipped); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(entries)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(data)
	}
}
