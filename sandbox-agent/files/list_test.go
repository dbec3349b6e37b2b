package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// paths lists, and returns what of.
func paths(t testing.TB, r *Reach, of string, want Listing) []string {
	t.Helper()
	if want.Limit == 0 {
		want.Limit = wire.DefaultListEntries
	}
	list, err := r.List(t.Context(), of, want)
	if err != nil {
		t.Fatalf("%q %+v: %v", of, want, err)
	}
	if list.Truncated {
		t.Errorf("%q %+v: truncated", of, want)
	}
	return pathsOf(list)
}

func pathsOf(list wire.FileList) (paths []string) {
	for _, e := range list.Entries {
		paths = append(paths, e.Path)
	}
	return paths
}

// tree is some files.
func tree(t testing.TB, dir string) {
	for _, name := range []string{"main.go", "a b/c.go", "src/x.go", "src/deep/y.go", "src/deep/z.txt", ".git/config", ".git/objects/o", "src/.env", "src.txt", ".x.write-0123456789abcdef", "uploads/.y.upload-0123456789abcdef"} {
		file(t, dir, name, name, 0o644)
	}
	symlink(t, dir, "src", "link")
	symlink(t, dir, "..", "up")
}

func TestList(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t)
	tree(t, dir)
	top := []string{".git", "a b", "link", "main.go", "src", "src.txt", "up", "uploads"}
	for name, c := range map[string]struct {
		path string
		want Listing
		got  []string
	}{
		"the workspace":               {".", Listing{}, top},
		"absolute":                    {dir, Listing{}, top},
		"a directory":                 {"src", Listing{}, []string{"src/.env", "src/deep", "src/x.go"}},
		"a link to one":               {"link", Listing{Depth: 2}, []string{"src/.env", "src/deep", "src/deep/y.go", "src/deep/z.txt", "src/x.go"}},
		"deeper":                      {".", Listing{Depth: 2}, []string{".git", "a b", "a b/c.go", "link", "main.go", "src", "src/.env", "src/deep", "src/x.go", "src.txt", "up", "uploads"}},
		"deepest":                     {"src", Listing{Depth: 1 << 30}, []string{"src/.env", "src/deep", "src/deep/y.go", "src/deep/z.txt", "src/x.go"}},
		"hidden, too":                 {".", Listing{Depth: 3, Hidden: true, Glob: "**/{o,config}"}, []string{".git/config", ".git/objects/o"}},
		"a pattern":                   {".", Listing{Glob: "*.go"}, []string{"main.go"}},
		"below":                       {".", Listing{Glob: "./src/*.go"}, []string{"src/x.go"}},
		"any depth":                   {".", Listing{Glob: "**/*.go"}, []string{"a b/c.go", "main.go", "src/deep/y.go", "src/x.go"}},
		"any depth, below":            {"src", Listing{Glob: "**/*.go"}, []string{"src/deep/y.go", "src/x.go"}},
		"any depth, but bounded":      {".", Listing{Glob: "**/*.go", Depth: 2}, []string{"a b/c.go", "main.go", "src/x.go"}},
		"everything below":            {".", Listing{Glob: "src/**"}, []string{"src", "src/.env", "src/deep", "src/deep/y.go", "src/deep/z.txt", "src/x.go"}},
		"braces":                      {".", Listing{Glob: "src/{deep/*.go,*.go}"}, []string{"src/deep/y.go", "src/x.go"}},
		"a class":                     {".", Listing{Glob: "src/deep/[x-y].*"}, []string{"src/deep/y.go"}},
		"a hidden directory's":        {".", Listing{Glob: ".git/*"}, []string{".git/config", ".git/objects"}},
		"a hidden directory anywhere": {".", Listing{Glob: "**/.git/config"}, []string{".git/config"}},
		"hidden files":                {".", Listing{Glob: "**/.*"}, []string{".git", "src/.env"}},
		"no match":                    {".", Listing{Glob: "*.rs"}, nil},
		"what is being written":       {"uploads", Listing{Hidden: true}, nil},
	} {
		got := paths(t, r, c.path, c.want)
		if diff := cmp.Diff(c.got, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestListTellsOfEntries(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	r, _ := fixture(t, root)
	when := time.Date(2026, 12, 1, 2, 3, 4, 5000, time.UTC)
	file(t, root, "file", "12345", 0o640)
	directory(t, filepath.Join(root, "directory"))
	special(t, root, "fifo", unix.S_IFIFO)
	special(t, root, "socket", unix.S_IFSOCK)
	file(t, root, "invalid\xff", "", 0o604)
	symlink(t, root, "no\xffwhere", "link")
	for _, name := range []string{"file", "directory", "fifo", "socket", "invalid\xff", "link"} {
		at := unix.NsecToTimespec(when.UnixNano())
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(root, name), []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			t.Fatal(err)
		}
	}
	list, err := r.List(t.Context(), root, Listing{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	want := wire.FileList{Path: root, Entries: []wire.FileEntry{
		{Path: root + "/directory", Type: wire.TypeDirectory, Mode: "0755", Modified: when},
		{Path: root + "/fifo", Type: wire.TypeFIFO, Mode: "0644", Modified: when},
		{Path: root + "/file", Type: wire.TypeFile, Size: 5, Mode: "0640", Modified: when},
		{Path: root + "/invalid\xff", Type: wire.TypeFile, Mode: "0604", Modified: when},
		{Path: root + "/link", Type: wire.TypeSymlink, Mode: "0777", Modified: when, Target: "no\xffwhere"},
		{Path: root + "/socket", Type: wire.TypeSocket, Mode: "0644", Modified: when},
	}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if list, err = r.List(t.Context(), "/dev", Listing{Limit: 10}); !errors.Is(err, ErrOutside) {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestListIsRefused(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t)
	file(t, dir, "file", "", 0o644)
	special(t, dir, "fifo", unix.S_IFIFO)
	for name, c := range map[string]struct {
		path string
		want Listing
		kind error
		says string
	}{
		"a file":             {"file", Listing{}, ErrNotDirectory, `"file" is a file, no directory`},
		"a FIFO":             {"fifo", Listing{}, ErrNotDirectory, `"fifo" is a fifo, no directory`},
		"nothing":            {"fil", Listing{}, ErrNotFound, `there is no directory "fil"; there is "file"`},
		"outside":            {"..", Listing{}, ErrOutside, "outside"},
		"an absolute glob":   {".", Listing{Glob: "/x"}, ErrRequest, "relative"},
		"a malformed glob":   {".", Listing{Glob: "[a"}, ErrRequest, "is no pattern"},
		"a long glob":        {".", Listing{Glob: strings.Repeat("a", wire.MaxGlob+1)}, ErrRequest, "longer than 1024 bytes"},
		"a glob of too many": {".", Listing{Glob: strings.Repeat("{a,b}", 9)}, ErrRequest, "more than 256"},
		"a cursor":           {".", Listing{After: "?"}, ErrRequest, "after:"},
		"an empty cursor":    {".", Listing{After: cursor{}.String()}, ErrRequest, "after:"},
		"a cursor upwards":   {".", Listing{After: cursor{[]string{"..", "x"}, false}.String()}, ErrRequest, "after:"},
		"a long cursor":      {".", Listing{After: cursor{[]string{strings.Repeat("a", wire.MaxPath)}, false}.String()}, ErrRequest, "after:"},
	} {
		if list, err := r.List(t.Context(), c.path, c.want); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %+v, %v, want %s", name, list, err, c.says)
		}
	}
	for _, glob := range []string{strings.Repeat("a", wire.MaxGlob), strings.Repeat("{a,b}", 8)} {
		if got := paths(t, r, ".", Listing{Glob: glob}); got != nil {
			t.Errorf("%.20q: %q", glob, got)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.List(ctx, ".", Listing{Limit: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that is gone: %v", err)
	}
}

// pages lists in parts, and returns all.
func pages(t *testing.T, r *Reach, of string, want Listing, b bounds) (got []string, parts int) {
	t.Helper()
	for {
		parts++
		list, err := r.list(t.Context(), of, want, b)
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Entries) > want.Limit || list.Truncated != (list.Next != "") {
			t.Fatalf("%d entries of %d, truncated: %v, next: %q", len(list.Entries), want.Limit, list.Truncated, list.Next)
		}
		got = append(got, pathsOf(list)...)
		if want.After = list.Next; !list.Truncated {
			return got, parts
		}
	}
}

// Whatever the limits, the parts together are the whole.
func TestListGoesOn(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t)
	tree(t, dir)
	for i := range 30 {
		file(t, dir, fmt.Sprintf("many/%d/\xff%d", i%7, i), "", 0o644)
	}
	for _, want := range []Listing{{Depth: 64}, {Glob: "**/*.go"}, {Depth: 64, Hidden: true}, {Glob: "many/**"}} {
		want.Limit = 1000
		all := paths(t, r, ".", want)
		for _, limit := range []int{1, 2, 3, len(all) - 1, len(all), len(all) + 1} {
			want.Limit = limit
			got, parts := pages(t, r, ".", want, bounds{1000, 100, maxMatching})
			if diff := cmp.Diff(all, got); diff != "" || parts != max(1, (len(all)+limit-1)/limit) {
				t.Errorf("%+v: in %d parts (-want +got)\n%s", want, parts, diff)
			}
		}
		want.Limit = 1000
		for _, visits := range []int{11, 12, 20, 50} { // the largest directory has 11 names
			if got, _ := pages(t, r, ".", want, bounds{visits, 100, maxMatching}); !slices.Equal(got, all) {
				t.Errorf("%+v, %d visits: %q, want %q", want, visits, got, all)
			}
		}
	}
}

// A directory that can't be read is listed, and left out.
func TestListOfWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Log("root reads everything: what is refused to others is seen in the agent's tests")
	}
	r, dir := fixture(t)
	file(t, dir, "d/f", "", 0o644)
	file(t, dir, "e/f", "", 0o644)
	if err := os.Chmod(filepath.Join(dir, "d"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chmod(filepath.Join(dir, "d"), 0o755); err != nil {
			t.Error(err)
		}
	})
	want := []string{"d", "e", "e/f"}
	if os.Getuid() == 0 {
		want = []string{"d", "d/f", "e", "e/f"}
	}
	if got := paths(t, r, ".", Listing{Depth: 2}); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A pattern finds what the library finds in all paths.
func FuzzGlob(f *testing.F) {
	r, dir := fixture(f)
	names := []string{"a", "b/a", "b/c/a", "b/.h/a", ".h/b", "ab", "a*", "b/c/d/e"}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			file(f, dir, name, "", 0o644)
		}
	}
	all := paths(f, r, ".", Listing{Depth: 64, Hidden: true})
	for _, glob := range []string{"*", "**", "**/a", "b/**/a", "{a,b/*}", "[ab]", "?", "b/*/", ".h/*", "**/**/e", `a\*`, `?*\/a`, "[a/b]", "b***/*", "{a,b/*}*", "b//a", "**a", "a/**"} {
		f.Add(glob)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		if _, err := parseGlob(pattern); err != nil {
			return
		}
		var want []string
		for _, p := range all {
			if pattern == "" && strings.Contains(p, "/") {
				continue
			}
			if ok, err := doublestar.Match(strings.TrimPrefix(pattern, "./"), p); err == nil && ok || strings.TrimPrefix(pattern, "./") == "" && path.Base(p) == p {
				want = append(want, p)
			}
		}
		if got := paths(t, r, ".", Listing{Glob: pattern, Hidden: true}); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", pattern, got, want)
		}
	})
}

func FuzzCursor(f *testing.F) {
	f.Add(cursor{[]string{"a", "b\xff"}, true}.String())
	f.Add("")
	r, dir := fixture(f)
	tree(f, dir)
	f.Fuzz(func(t *testing.T, after string) {
		list, err := r.List(t.Context(), ".", Listing{Depth: 64, Limit: 3, After: after})
		if err != nil {
			if !errors.Is(err, ErrRequest) {
				t.Error(err)
			}
			return
		}
		c, err := parseCursor(after)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Entries {
			if len(c.names) > 0 && slices.Compare(strings.Split(e.Path, "/"), c.names) < 0 {
				t.Errorf("%q comes after %q", e.Path, c.names)
			}
		}
	})
}
