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

// A pattern whose braces cost much has a list of several parts, together the whole,
// where one without has one.
func TestListSpendsABoundedTimeOnItsPattern(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t)
	for i := range 30 {
		file(t, dir, fmt.Sprintf("d%d/name-%d", i%3, i), "", 0o644)
	}
	const matching = 1500 // 32 alternatives of 10 bytes a path go four times into it, one goes 150 times
	plain, dear := Listing{Limit: 100, Glob: "**/name-*"}, Listing{Limit: 100, Glob: "**/{n,n}{a,a}{m,m}{e,e}{-*,-*}"}
	want, parts := pages(t, r, ".", plain, bounds{1000, 100, matching})
	if len(want) != 30 || parts != 1 {
		t.Errorf("%d entries in %d parts, want 30 in one", len(want), parts)
	}
	got, parts := pages(t, r, ".", dear, bounds{1000, 100, matching})
	if diff := cmp.Diff(want, got); diff != "" || parts < 7 {
		t.Errorf("in %d parts (-want +got)\n%s", parts, diff)
	}
	long := Listing{Limit: 100, Glob: "**/*" + strings.Repeat("[a-z]", 7) + "*"} // 38 bytes, tried at each byte
	if got, parts := pages(t, r, ".", long, bounds{1000, 100, matching}); len(got) != 0 || parts != 1 {
		t.Errorf("a long part: %q in %d parts, want nothing in one", got, parts)
	}
	if _, parts := pages(t, r, ".", long, bounds{1000, 100, matching / 2}); parts != 2 {
		t.Errorf("a long part, half of that: %d parts, want 2", parts)
	}
	// One path never costs all that a list spends, or there would be no going on.
	if most := wire.MaxGlobAlternatives * wire.MaxPath * (1 + wire.MaxGlob/shortPart); most > maxMatching {
		t.Errorf("one path may cost %d of %d", most, maxMatching)
	}
	flat, err := r.list(t.Context(), "d0", dear, bounds{5, 100, 100})
	if err != nil || !flat.Truncated || flat.Next != "" {
		t.Errorf("of a directory too large: %+v, %v", flat, err)
	}
}

// What follows a * is tried at each byte of a path: the longer it is, the more a
// path costs, whatever braces hide of it.
func TestALongPatternCostsMore(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]int{
		"":                                    0,
		"**/*.go":                             10,
		"*" + strings.Repeat("?", 14):         10,
		"*" + strings.Repeat("?", 15):         20,
		strings.Repeat("a/", 100):             10,
		"*" + strings.Repeat("[a-z]", 100):    320,
		"*" + strings.Repeat("{?}", 31):       30,
		"*" + strings.Repeat("{?,/}", 4):      160,
		"{*{?,????????????????},b}":           80, // three are taken for four
		"*{" + strings.Repeat(`\,`, 16) + "}": 17 * 30,
		"*.{c,cc,h,hh}":                       40,
		`\{{a,b}\}`:                           20,
	} {
		g, err := parseGlob(pattern)
		if got := g.cost("0123456789"); err != nil || got != want {
			t.Errorf("%q costs %d, %v, want %d", pattern, got, err, want)
		}
	}
}

// A directory that holds more than a list looks at is listed in part, without a
// way to go on.
func TestListOfADirectoryTooLarge(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t)
	for i := range 10 {
		file(t, dir, fmt.Sprintf("d/%d/f", i), "", 0o644)
	}
	for visits, whole := range map[int]bool{9: false, 10: true, 11: true} {
		list, err := r.list(t.Context(), "d", Listing{Limit: 100}, bounds{visits, 100, maxMatching})
		if err != nil || list.Truncated == whole || list.Next != "" || len(list.Entries) != min(visits, 10) {
			t.Errorf("%d visits: %d entries, truncated: %v, next: %q, %v", visits, len(list.Entries), list.Truncated, list.Next, err)
		}
	}
}

// Names are held a page at a time.
func TestListOfManyNames(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t)
	const n = 60
	for i := range n {
		file(t, dir, fmt.Sprint(i*7%n), "", 0o644) // in no order
	}
	all := paths(t, r, ".", Listing{})
	if len(all) != n || !slices.IsSorted(all) {
		t.Errorf("%q", all)
	}
	for _, page := range []int{1, 2, 7, n/2 - 1, n / 2, n/2 + 1, n - 1, n, n + 1} {
		list, err := r.list(t.Context(), ".", Listing{Limit: n}, bounds{n * n, page, maxMatching})
		if got := pathsOf(list); err != nil || list.Truncated || !slices.Equal(got, all) {
			t.Errorf("pages of %d: %q, %v", page, got, err)
		}
	}
}

// The encoding is bounded, too.
func TestListIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t)
	const n, size = 100, 4000
	for i := range n {
		symlink(t, dir, strings.Repeat("\x01", size), fmt.Sprint(i)) // six bytes each
	}
	list, err := r.List(t.Context(), ".", Listing{Limit: n})
	if err != nil || !list.Truncated || len(list.Entries) > wire.MaxList/(6*size) || len(list.Entries) < wire.MaxList/(6*size+200) {
		t.Errorf("%d entries, truncated: %v, %v", len(list.Entries), list.Truncated, err)
	}
	if got, _ := pages(t, r, ".", Listing{Limit: n}, bounds{1000, 100, maxMatching}); len(got) != n {
		t.Errorf("%d in all", len(got))
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
