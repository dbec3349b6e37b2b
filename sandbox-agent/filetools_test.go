package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

func (a *agent) writeFile(t testing.TB, path, content string) *client.WrittenFile {
	t.Helper()
	w, err := a.client.WriteFile(t.Context(), a.pod, path, int64(len(content)), strings.NewReader(content))
	if err != nil {
		t.Fatalf("write %q: %v\n%s", path, err, a.log)
	}
	return w
}

func (a *agent) lines(t testing.TB, path string, lines client.Lines) *client.FileContent {
	t.Helper()
	c, err := a.client.ReadLines(t.Context(), a.pod, path, lines)
	if err != nil {
		t.Fatalf("read lines of %q: %v\n%s", path, err, a.log)
	}
	return c
}

func (a *agent) list(t testing.TB, l client.Listing) (paths []string) {
	t.Helper()
	list, err := a.client.ListFiles(t.Context(), a.pod, l)
	if err != nil {
		t.Fatalf("list %+v: %v\n%s", l, err, a.log)
	}
	for _, e := range list.Entries {
		paths = append(paths, e.Path)
	}
	return paths
}

// The four tools, one after the other, beside the shell.
func TestFileTools(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	const odd = "dir &+%/naïve ;漢 \u202e.txt"
	same := func(what string, want, got any) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", what, diff)
		}
	}
	same("new", &client.WrittenFile{Path: odd, Size: 14, Mode: "0644", Created: true}, a.writeFile(t, odd, "one\ntwo\nthree\n"))
	a.output(t, "chmod 750 dir*/*")
	same("again", &client.WrittenFile{Path: odd, Size: 14, Mode: "0750"}, a.writeFile(t, filepath.Join(a.workspace, odd), "one\r\ntwo\nthree"))
	total := int64(3)
	want := &client.FileContent{Offset: 5, Data: []byte("two\n"), FileFacts: client.FileFacts{Size: 14, Mode: "0750", MIMEType: "text/plain", Encoding: client.EncodingUTF8,
		Lines: &client.FileLineFacts{First: 2, Count: 1, Offset: 5, Total: &total, Next: 3, NextOffset: 9}}}
	c := a.lines(t, odd, client.Lines{First: 2, Count: 1})
	if age := time.Since(c.Modified); age < 0 || age > time.Hour {
		t.Errorf("modified %v", c.Modified)
	}
	c.Modified = want.Modified
	same("read", want, c)
	e, err := a.client.EditFile(t.Context(), a.pod, odd, []client.Edit{{Old: "two", New: "2 <&>"}, {Old: "e", New: "E", ReplaceAll: true}})
	if err != nil {
		t.Fatal(err)
	}
	same("edited", &client.EditedFile{Path: odd, Size: 16, Edits: []client.EditMade{{Replaced: 1, Line: 2}, {Replaced: 3, Line: 1}}}, e)
	if got := a.output(t, "cat dir*/* && stat -c %a dir*/*"); got != "onE\r\n2 <&>\nthrEE750\n" {
		t.Errorf("a command finds %q", got)
	}
	a.writeFile(t, "empty", "")
	same("listed", []string{"dir &+%", odd, "empty"}, a.list(t, client.Listing{Depth: 2}))
	same("listed by a pattern", []string{odd}, a.list(t, client.Listing{Path: "dir &+%", Glob: "*.txt", Limit: 1}))
}

func TestReadBytes(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	data := noise(3 << 20)
	data[100] = 0
	if err := os.WriteFile(filepath.Join(a.workspace, "f"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	a.output(t, ": >empty")
	size := int64(len(data))
	for _, c := range []struct{ offset, length, want int64 }{
		{0, 0, wire.MaxFileRead}, {0, 1, 1}, {5, 10, 10}, {size - 1, 10, 1}, {size - 5, 0, 5}, {1, wire.MaxFileRead, wire.MaxFileRead}, {1, wire.MaxFileRead + 1, wire.MaxFileRead},
	} {
		got, err := a.client.ReadBytes(t.Context(), a.pod, "f", client.Span{Offset: c.offset, Length: c.length})
		if err != nil || got.Offset != c.offset || !bytes.Equal(got.Data, data[c.offset:c.offset+c.want]) || got.Size != size || got.Encoding != client.EncodingBinary {
			t.Errorf("%+v: %d bytes at %d, %v", c, len(got.Data), got.Offset, err)
		}
	}
	if got, err := a.client.ReadBytes(t.Context(), a.pod, "empty", client.Span{}); err != nil || len(got.Data) != 0 || got.Size != 0 {
		t.Errorf("empty: %+v, %v", got, err)
	}
	_, err := a.client.ReadBytes(t.Context(), a.pod, "f", client.Span{Offset: size})
	wantRefusal(t, err, client.ErrRange, fmt.Sprintf("the file has %d bytes: there is no byte %d", size, size))
	// All of it, without a range, is streamed.
	resp, body := a.raw(t, http.MethodGet, "/v1/files?path=f", "", "")
	if resp.StatusCode != 200 || body != string(data) || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d, %d bytes, %v", resp.StatusCode, len(body), resp.Header)
	}
}

// The session's roots are reached, by their own paths and by links, and no others.
func TestFileRoots(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{unbound: true})
	root, other := t.TempDir(), t.TempDir()
	bind := func(roots ...string) error {
		return a.client.Bind(t.Context(), a.pod, client.Session{UID: "sandbox-1", FileRoots: roots})
	}
	eight := []string{root, "/1", "/2", "/3", "/4", "/5", "/6", "/7"}
	for _, roots := range [][]string{{"relative"}, {"/a/../b"}, {"/a/"}, {""}, {"/a\x00"}, {"/" + strings.Repeat("a", 4096)}, append(eight, "/8")} {
		if err := bind(roots...); err == nil || !strings.Contains(err.Error(), "file_roots") {
			t.Errorf("%.50q: %v", roots, err)
		}
	}
	if err := bind(eight...); err != nil {
		t.Fatal(err)
	}
	a.output(t, "ln -s "+root+" data; ln -s "+other+" other")
	if w := a.writeFile(t, filepath.Join(root, "d/f"), "x"); w.Path != filepath.Join(root, "d/f") {
		t.Errorf("wrote %+v", w)
	}
	if c := a.lines(t, "data/d/f", client.Lines{}); string(c.Data) != "x" {
		t.Errorf("read %q", c.Data)
	}
	if got := a.list(t, client.Listing{Path: "data", Depth: 2}); !slices.Equal(got, []string{filepath.Join(root, "d"), filepath.Join(root, "d/f")}) {
		t.Errorf("listed %q", got)
	}
	_, err := a.client.ListFiles(t.Context(), a.pod, client.Listing{Path: "other"})
	wantRefusal(t, err, client.ErrOutsideWorkspace, `the link "other" leads outside`)
	// Exports stay in the workspace.
	if _, err := a.client.Export(t.Context(), a.pod, client.ExportRequest{Path: filepath.Join(root, "d/f")}); !errors.Is(err, client.ErrOutsideWorkspace) {
		t.Errorf("export: %v", err)
	}
	if err := bind(); err != nil {
		t.Fatal(err)
	}
	_, err = a.client.ReadLines(t.Context(), a.pod, filepath.Join(root, "d/f"), client.Lines{})
	wantRefusal(t, err, client.ErrOutsideWorkspace, "leads outside")
}

// The tools don't wait for commands, and are activity.
func TestFileToolsBesideACommand(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, "mkfifo gate")
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		a.output(t, "read -r <gate")
	}()
	a.writeFile(t, "f", "x")
	a.lines(t, "f", client.Lines{})
	a.list(t, client.Listing{})
	a.fifo(t, "gate", true)
	<-ran
	body, sender := io.Pipe()
	written := make(chan error)
	go func() {
		_, err := a.client.WriteFile(t.Context(), a.pod, "g", -1, body)
		written <- err
	}()
	if _, err := sender.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if got, err := a.client.Quiesce(t.Context(), a.pod, 0); err != nil || got.Quiesced || got.Other != 1 {
		t.Errorf("quiesce during a write: %+v, %v", got, err)
	}
	sender.Close()
	if err := <-written; err != nil {
		t.Error(err)
	}
	if got, err := a.client.Quiesce(t.Context(), a.pod, 0); err != nil || !got.Quiesced {
		t.Errorf("quiesce after it: %+v, %v", got, err)
	}
	if _, err := a.client.ListFiles(t.Context(), a.pod, client.Listing{}); !errors.Is(err, client.ErrGone) {
		t.Errorf("list then: %v, want ErrGone", err)
	}
}

// A line is found in a large file without the file being held, and many calls at
// a time keep to the agent's bound.
func TestFileToolsKeepToTheMemory(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{shipped: true})
	const size = 1 << 30
	f, err := os.Create(filepath.Join(a.workspace, "huge"))
	if err == nil {
		defer f.Close()
		_, err = f.WriteAt([]byte(strings.Repeat("lines\n", 2000)), 0)
	}
	if err == nil { // a line of almost a GiB, without a block of its own, and two more
		_, err = f.WriteAt([]byte("\nlast but one\nlast"), size)
	}
	text := strings.Repeat("some text, again and again\n", 4<<20/27)
	for i := range 32 {
		err = errors.Join(err, os.WriteFile(filepath.Join(a.workspace, fmt.Sprint(i)), []byte(text+fmt.Sprint("edit ", i)), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	idle := a.memory(t)
	var calls sync.WaitGroup
	for i := range 32 {
		calls.Go(func() {
			name := fmt.Sprint(i)
			if _, err := a.client.EditFile(t.Context(), a.pod, name, []client.Edit{{Old: "edit " + name, New: "edited"}, {Old: "some", New: "any", ReplaceAll: true}}); err != nil {
				t.Error(err)
			}
			c, err := a.client.ReadLines(t.Context(), a.pod, name, client.Lines{Limit: client.MaxFileRead})
			if err != nil || !strings.HasPrefix(string(c.Data), "any text") {
				t.Errorf("read: %v", err)
			}
		})
	}
	calls.Go(func() {
		c := a.lines(t, "huge", client.Lines{First: 2001, Count: 2})
		want := client.CutLine{Line: 2001, Offset: 12000, Size: size - 12000, Kept: client.MaxFileLine}
		if string(c.Data) != strings.Repeat("\x00", client.MaxFileLine)+"\nlast but one\n" || *c.Lines.Total != 2003 || len(c.Lines.Cut) != 1 || c.Lines.Cut[0] != want {
			t.Errorf("%d bytes, %+v", len(c.Data), c.Lines)
		}
	})
	calls.Wait()
	most := a.peak(t)
	t.Logf("%d KiB when idle, %d KiB more at most", idle>>10, (most-idle)>>10)
	if most-idle > 32<<20 {
		t.Errorf("the agent took %d MiB more", (most-idle)>>20)
	}
}
