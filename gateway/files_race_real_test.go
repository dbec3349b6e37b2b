package gateway_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"
)

// Edits of one file by many callers at a time all land, by whatever name they have it.
func TestEditsAtTheSameTimeAllLand(t *testing.T) {
	t.Parallel()
	l, workspace := newReal(t)
	const n = 32
	var content strings.Builder
	for i := range n {
		fmt.Fprintf(&content, "line %d.\n", i)
	}
	path := filepath.Join(workspace, "f")
	if err := os.WriteFile(path, []byte(content.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("f", filepath.Join(workspace, "link")); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range n {
		c, name := l.client(eras[i%2]), []string{"f", "link", path}[i%3]
		all.Go(func() {
			edits := []object{{"old": fmt.Sprintf("line %d.", i), "new": fmt.Sprintf("edited %d.", i)}}
			r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "edit_file", Arguments: object{"path": name, "edits": edits}})
			if err != nil || r.IsError {
				t.Errorf("edit %d: %+v, %v", i, r, err)
			}
		})
	}
	all.Wait()
	if got, err := os.ReadFile(path); err != nil || string(got) != strings.ReplaceAll(content.String(), "line", "edited") {
		t.Errorf("the file is %q, %v", got, err)
	}
}

// While a file is written again and again, each way to read it finds one of its
// contents, whole.
func TestAWriteIsNeverSeenByHalves(t *testing.T) {
	t.Parallel()
	l, workspace := newReal(t)
	contents := []string{strings.Repeat("a", 300_000), strings.Repeat("b", 200_000)}
	isWhole := func(got string) bool { return slices.Contains(contents, got) }
	writer, reader := l.client(eras[0]), l.client(eras[1])
	write := func(content string) {
		r, err := writer.CallTool(t.Context(), &mcp.CallToolParams{Name: "write_file", Arguments: object{"path": "f", "content": content}})
		if err != nil || r.IsError {
			t.Errorf("%+v, %v", r, err)
		}
	}
	write(contents[0])
	over := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 1; ; i++ {
			select {
			case <-over:
				return
			default:
				write(contents[i%2])
			}
		}
	})
	for range 30 {
		if got := structured(t, call(t, reader, "read_file", object{"path": "f", "byte_limit": 512 << 10}))["content"].(string); !isWhole(got) {
			t.Errorf("read_file gave %d bytes", len(got))
		}
		if _, got := l.fetch(export(t, reader, "f")); !isWhole(got) {
			t.Errorf("an export has %d bytes", len(got))
		}
		if got := structured(t, bash(t, reader, "tr -s ab <f; stat -c ' %h' f"))["stdout"]; got != "a 1\n" && got != "b 1\n" {
			t.Errorf("a command found %.40q", got)
		}
	}
	close(over)
	writing.Wait()
	if entries, err := os.ReadDir(workspace); err != nil || len(entries) != 1 {
		t.Errorf("%v is left, %v", entries, err)
	}
}

// piece reads what a tool gives from a byte on: where it begins, and where the next
// one does, 0 at the end.
type piece func(at int) (data string, from, next int)

// pieceOf takes a piece out of a result, whose numbers are called so.
func pieceOf(t *testing.T, r *mcp.CallToolResult, from, next string) (string, int, int) {
	t.Helper()
	out := structured(t, r)
	data := out["content"].(string)
	if out["encoding"] == "base64" {
		decoded, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			t.Fatal(err)
		}
		data = string(decoded)
	}
	following, _ := out[next].(float64)
	return data, int(out[from].(float64)), int(following)
}

// together reads piece after piece from begin on, and says where the first begins.
func together(t *testing.T, read piece, begin int) (all string, first int) {
	t.Helper()
	all, first, next := read(begin)
	for next != 0 {
		at := next
		data, from, following := read(at)
		if from != at || following != 0 && following <= at {
			t.Fatalf("asked for byte %d, got %d, the next is %d", at, from, following)
		}
		all, next = all+data, following
	}
	return all, first
}

// Parts of any size from any byte on, one after the other, are the file: of text,
// whole characters; of what is none, bytes.
func TestPartsOfAFileAreTheFile(t *testing.T) {
	t.Parallel()
	l, workspace := newReal(t)
	c := l.client(eras[1])
	for name, content := range map[string]string{
		"text.txt":     "aé€😀e\u0301\U0010ffff\r\nz",
		"latin1.txt":   "gr\xfc\xdf in Latin-1\n",
		"broken.txt":   "ab😀\xf0\x9f\x98",
		"only tails":   "\x80\x80\x80\x80\x80\x80",
		"overlong.txt": "a\xc0\xaf\xed\xa0\x80b",
		"utf16.txt":    "\xff\xfea\x00\xe9\x00",
		"zeros":        "a\x00b\x00",
	} {
		if err := os.WriteFile(filepath.Join(workspace, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		uri := "artifact://berth/" + export(t, c, name)
		for length := 1; length <= 5; length++ {
			for tool, read := range map[string]piece{
				"read_file": func(at int) (string, int, int) {
					return pieceOf(t, call(t, c, "read_file", object{"path": name, "byte_offset": at, "byte_limit": length}), "byte_offset", "next_byte_offset")
				},
				"read_artifact": func(at int) (string, int, int) {
					return pieceOf(t, call(t, c, "read_artifact", object{"uri": uri, "offset": at, "length": length}), "offset", "next_offset")
				},
			} {
				for begin := range len(content) {
					if all, first := together(t, read, begin); first < begin || first > begin+3 || all != content[first:] {
						t.Errorf("%s of %s from %d by %d: %q from %d on", tool, name, begin, length, all, first)
					}
				}
			}
		}
	}
}

// A directory of hostile names is listed name by name, each once, as text; and what
// a list isn't to be gone on with is refused.
func TestListOfHostileNamesInParts(t *testing.T) {
	t.Parallel()
	l, workspace := newReal(t)
	names := []string{" ", "\n", "-rf", "..x", "...", "a*b", "a[b]c", "{a,b}", "\\", "\"", "\u202e", "é", "e\u0301", "\U0001f600", "\xff\xfe", "\x1b[31m", "%2f", strings.Repeat("n", 255), strings.Repeat("😀", 63)}
	want := map[string]int{}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(workspace, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		want[strings.Map(func(r rune) rune { return r }, name)]++ // each byte that is no UTF-8 as one U+FFFD
	}
	if err := unix.Mkfifo(filepath.Join(workspace, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	want["fifo"]++
	c := l.client(eras[1])
	got := map[string]int{}
	for arguments := (object{"limit": 1}); ; {
		list := structured(t, call(t, c, "list_files", arguments))
		for _, e := range list["entries"].([]any) {
			got[e.(object)["path"].(string)]++
		}
		if list["next"] == nil {
			break
		}
		arguments["after"] = list["next"]
		if len(got) > len(want) {
			t.Fatalf("more than there are: %q", slices.Collect(maps.Keys(got)))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	for _, after := range []string{"x", "Lg", "L2EvLi4vYg", "Li4", "!", strings.Repeat("QUFB", 2000), base64.RawURLEncoding.EncodeToString([]byte(".a\x00b"))} {
		if r := call(t, c, "list_files", object{"after": after}); !r.IsError {
			t.Errorf("after %.40q: %.200s", after, text(t, r))
		}
	}
	// What is gone, or never was, is gone on after.
	for _, after := range []string{"zzz", "a/b/c", strings.Repeat("a/", 1000) + "a"} {
		if r := call(t, c, "list_files", object{"after": base64.RawURLEncoding.EncodeToString([]byte("." + after))}); r.IsError {
			t.Errorf("after %.40q: %.200s", after, text(t, r))
		}
	}
	for _, glob := range []string{"/etc/*", "[", "{a", strings.Repeat("{a,b}", 9)} {
		wantFailure(t, glob, call(t, c, "list_files", object{"glob": glob}), "file list failed: ")
	}
	wantFailure(t, "1,025 bytes", call(t, c, "list_files", object{"glob": strings.Repeat("a", 1025)}), "invalid arguments: ")
	for _, glob := range []string{"../*", "**/../*", "..", "*/.."} {
		if r := call(t, c, "list_files", object{"glob": glob}); !r.IsError && len(structured(t, r)["entries"].([]any)) > 0 {
			t.Errorf("%s: %s", glob, text(t, r))
		}
	}
}
