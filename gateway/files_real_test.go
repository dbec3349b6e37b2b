package gateway_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

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
