package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

func TestApply(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content string
		edits   []wire.Edit
		want    string
		made    []wire.EditMade
	}{
		"once":                       {"a\nb\nc\n", []wire.Edit{{Old: "b", New: "x"}}, "a\nx\nc\n", []wire.EditMade{{Replaced: 1, Line: 2}}},
		"removed":                    {"a\nb\nc\n", []wire.Edit{{Old: "b\n"}}, "a\nc\n", []wire.EditMade{{Replaced: 1, Line: 2}}},
		"over lines":                 {"a\nb\nc\n", []wire.Edit{{Old: "\nb\nc", New: ""}}, "a\n", []wire.EditMade{{Replaced: 1, Line: 1}}},
		"the whole":                  {"abc", []wire.Edit{{Old: "abc", New: "x"}}, "x", []wire.EditMade{{Replaced: 1, Line: 1}}},
		"all":                        {"abab", []wire.Edit{{Old: "a", New: "xx", ReplaceAll: true}}, "xxbxxb", []wire.EditMade{{Replaced: 2, Line: 1}}},
		"all of one":                 {"ab", []wire.Edit{{Old: "a", New: "x", ReplaceAll: true}}, "xb", []wire.EditMade{{Replaced: 1, Line: 1}}},
		"all that overlaps":          {"aaaaa", []wire.Edit{{Old: "aa", New: "b", ReplaceAll: true}}, "bba", []wire.EditMade{{Replaced: 2, Line: 1}}},
		"in sequence":                {"a", []wire.Edit{{Old: "a", New: "b"}, {Old: "b", New: "c\nd"}, {Old: "d", New: "longer than before"}}, "c\nlonger than before", []wire.EditMade{{Replaced: 1, Line: 1}, {Replaced: 1, Line: 1}, {Replaced: 1, Line: 2}}},
		"bytes that are no text":     {"\xff\x00a\xfe", []wire.Edit{{Old: "a", New: "b"}}, "\xff\x00b\xfe", []wire.EditMade{{Replaced: 1, Line: 1}}},
		"carriage returns are bytes": {"a\r\nb\r\n", []wire.Edit{{Old: "a\r\nb", New: "c"}}, "c\r\n", []wire.EditMade{{Replaced: 1, Line: 1}}},
	} {
		got, made, err := apply([]byte(c.content), c.edits, 1000, "f")
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
		if diff := cmp.Diff(c.made, made); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func TestApplySaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content string
		edit    wire.Edit
		kind    error
		want    string
	}{
		"twice":            {"a\nb\na\n", wire.Edit{Old: "a"}, ErrManyMatches, `old is in "f" 2 times, at lines 1, 3: give more of what surrounds the one that is meant, or set replace_all`},
		"overlapping":      {"aaa", wire.Edit{Old: "aa"}, ErrManyMatches, `2 times, at lines 1, 1:`},
		"ten times":        {strings.Repeat("a\n", 10), wire.Edit{Old: "a"}, ErrManyMatches, `10 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:`},
		"eleven times":     {strings.Repeat("a\n", 11), wire.Edit{Old: "a"}, ErrManyMatches, `11 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...:`},
		"99 times":         {strings.Repeat("a\n", 99), wire.Edit{Old: "a"}, ErrManyMatches, `is in "f" 99 times, at`},
		"100 times":        {strings.Repeat("a\n", 100), wire.Edit{Old: "a"}, ErrManyMatches, `is in "f" 100 times or more, at`},
		"nowhere":          {"a\n", wire.Edit{Old: "something else"}, ErrNoMatch, `old is not in "f": no line of it is; read the file again`},
		"an empty file":    {"", wire.Edit{Old: "a"}, ErrNoMatch, `no line of it is`},
		"indentation":      {"if x {\n\ty()\n}\n", wire.Edit{Old: "if x {\n    y()\n}"}, ErrNoMatch, `it differs in indentation (tabs and spaces) from line 1 on, which is "if x {\n\ty()\n}"`},
		"less indentation": {"a:\n    b\n", wire.Edit{Old: "a:\n  b"}, ErrNoMatch, `it differs in indentation from line 1 on`},
		"spaces at ends":   {"x\na  \nb\n", wire.Edit{Old: "a\nb"}, ErrNoMatch, `it differs in white space at the ends of lines from line 2 on, which is "a  \nb"`},
		"spaces within":    {"a  =  b\n", wire.Edit{Old: "a = b"}, ErrNoMatch, `it differs in white space from line 1 on, which is "a  =  b"`},
		"the last newline": {"x\nab", wire.Edit{Old: "ab\n"}, ErrNoMatch, `it differs in the white space at its beginning or end from line 2 on, which is "ab"`},
		"file has CRLF":    {"x\r\na\r\nb\r\n", wire.Edit{Old: "a\nb"}, ErrNoMatch, `the lines of the file, from line 2 on, end in \r\n, those of old in \n`},
		"old has CRLF":     {"x\na\nb\n", wire.Edit{Old: "a\r\nb"}, ErrNoMatch, `the lines of old end in \r\n, those of the file, from line 2 on, in \n`},
		"line numbers":     {"x\nfoo\n  bar\n", wire.Edit{Old: "     2\tfoo\n     3\t  bar"}, ErrNoMatch, `old begins its lines with their numbers: leave those out; the text is at line 2`},
		"arrows":           {"foo\nbar\n", wire.Edit{Old: " 1→foo\n 2→bar"}, ErrNoMatch, `leave those out; the text is at line 1`},
		"escapes":          {"foo\n\"bar\"\n", wire.Edit{Old: `foo\n\"bar\"`}, ErrNoMatch, `old holds \n, \t or \" as two characters each: give the characters themselves; the text is at line 1`},
		"quotation marks":  {"say \"it's\"\n", wire.Edit{Old: "say “it’s”"}, ErrNoMatch, `old has other quotation marks, dashes or spaces than the file; the text is at line 1`},
		"made already":     {"x\nnew text\n", wire.Edit{Old: "old text", New: "new text"}, ErrNoMatch, `but new is, at line 2: this edit may have been made already`},
		"another line":     {"func a() {\n  return 1\n}\n", wire.Edit{Old: "func a() {\n  return 2\n}"}, ErrNoMatch, `its line 1 is line 1 of the file, but line 2, for its line 2, is "  return 1"`},
		"lines too many":   {"func a() {", wire.Edit{Old: "func a() {\n  return 2\n}"}, ErrNoMatch, `its line 1 is line 1 of the file, which ends before its line 2`},
		"more at the end":  {"x\nvar one, two\n", wire.Edit{Old: "nothing here\nvar one"}, ErrNoMatch, `its line 2 is in line 2 of the file, which is "var one, two"`},
		"long lines":       {"func a() {\n" + strings.Repeat("é", 1000) + "\n", wire.Edit{Old: "func a() {\nx"}, ErrNoMatch, `is "` + strings.Repeat("é", shownText/2) + `"...`},
	} {
		_, _, err := apply([]byte(c.content), []wire.Edit{c.edit}, 1000, "f")
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
	_, _, err := apply([]byte("a"), []wire.Edit{{Old: "a", New: "b"}, {Old: "a", New: "c"}}, 1000, "f")
	if !errors.Is(err, ErrNoMatch) || !strings.HasPrefix(err.Error(), `edit 2 of 2: old is not in "f"`) {
		t.Errorf("the second: %v", err)
	}
}

// The result is bounded before it is made.
func TestApplyIsBounded(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("a", 10)
	for limit, fits := range map[int64]bool{29: false, 30: true, 31: true} {
		got, _, err := apply([]byte(content), []wire.Edit{{Old: "a", New: "xyz", ReplaceAll: true}}, limit, "f")
		if fits != (err == nil) || !fits && !errors.Is(err, ErrTooLarge) || fits && len(got) != 30 {
			t.Errorf("limit %d: %d bytes, %v", limit, len(got), err)
		}
	}
	huge := strings.Repeat("x", 1<<20)
	if _, _, err := apply(bytes.Repeat([]byte("a"), 8<<20), []wire.Edit{{Old: "a", New: huge, ReplaceAll: true}}, wire.MaxEditFile, "f"); !errors.Is(err, ErrTooLarge) {
		t.Errorf("8 TiB: %v", err)
	}
}

// Text of millions of empty lines takes no more to explain than other text.
func TestExplainingHoldsNoLines(t *testing.T) {
	const size = 1 << 20
	content := []byte("x" + strings.Repeat("\n", size) + "y")
	for what, e := range map[string]wire.Edit{
		"the file's lines": {Old: "x y", New: "z"},
		"old's lines":      {Old: "z" + strings.Repeat("\n", size), New: "z"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := apply(content, []wire.Edit{e}, wire.MaxEditFile, "f")
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrNoMatch) || taken > 16*size {
			t.Errorf("%s: %d bytes, %v", what, taken, err)
		}
	}
}

// Edits that add a byte each take two buffers, not one each.
func TestGrowingEditsShareBuffers(t *testing.T) {
	const size = 1 << 20
	content := []byte("@" + strings.Repeat("a", size))
	edits := slices.Repeat([]wire.Edit{{Old: "@", New: "@."}}, wire.MaxEdits)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	result, _, err := apply(content, edits, wire.MaxEditFile, "f")
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; err != nil || len(result) != size+1+wire.MaxEdits || taken > 4*size {
		t.Errorf("%d bytes of memory, %d of result, %v", taken, len(result), err)
	}
}

func FuzzApply(f *testing.F) {
	f.Add("hello\nworld\n", "o", "0", true, "l", "L", true)
	f.Add("aaaa", "aa", "a", false, "a", "aa", false)
	f.Add("a\r\nb", "a\nb", "", true, " 1\ta", "“", false)
	f.Fuzz(func(t *testing.T, content, old1, new1 string, all1 bool, old2, new2 string, all2 bool) {
		edits := []wire.Edit{{Old: old1, New: new1, ReplaceAll: all1}, {Old: old2, New: new2, ReplaceAll: all2}}
		if checkEdits(edits) != nil || len(content) > 10_000 {
			return
		}
		want, kind := content, error(nil)
		for _, e := range edits {
			first, last := strings.Index(want, e.Old), strings.LastIndex(want, e.Old)
			switch {
			case first < 0:
				kind = ErrNoMatch
			case first != last && !e.ReplaceAll:
				kind = ErrManyMatches
			}
			if kind != nil {
				break
			}
			want = strings.ReplaceAll(want, e.Old, e.New)
		}
		got, made, err := apply([]byte(content), edits, 1<<40, "f")
		if kind != nil {
			if !errors.Is(err, kind) || len(err.Error()) > 2000 {
				t.Fatalf("%q, %v, want %v", got, err, kind)
			}
			return
		}
		if err != nil || string(got) != want || len(made) != 2 {
			t.Fatalf("%q, %v, want %q", got, err, want)
		}
	})
}

// noRoom lets everything in.
func noRoom(context.Context, int64) (func(), error) { return func() {}, nil }

func edit(old, replacement string) []wire.Edit { return []wire.Edit{{Old: old, New: replacement}} }

func TestEdit(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t)
	file(t, dir, "f", "one\ntwo\n", 0o640)
	got, err := r.Edit(t.Context(), "f", edit("two", "three"), 0, noRoom)
	want := wire.EditedFile{Path: "f", Size: 10, Edits: []wire.EditMade{{Replaced: 1, Line: 2}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	wantFile(t, dir, "f", "one\nthree\n", 0o640)
	// All or nothing.
	if _, err := r.Edit(t.Context(), "f", append(edit("one", "1"), edit("two", "2")...), 0, noRoom); !errors.Is(err, ErrNoMatch) {
		t.Errorf("the second fails: %v", err)
	}
	wantFile(t, dir, "f", "one\nthree\n", 0o640)
	wantNames(t, dir, "f")
}

func TestEditIsRefused(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t)
	file(t, dir, "f", "abc", 0o644)
	file(t, dir, "d/f", "abc", 0o644)
	for name, c := range map[string]struct {
		path  string
		edits []wire.Edit
		limit int64
		kind  error
		want  string
	}{
		"nothing":        {"f", nil, 0, ErrRequest, "edits: give 1 to 256"},
		"too many":       {"f", make([]wire.Edit, wire.MaxEdits+1), 0, ErrRequest, "edits: give 1 to 256"},
		"an empty old":   {"f", append(edit("a", "b"), edit("", "b")...), 0, ErrRequest, "edit 2: old is empty"},
		"no change":      {"f", edit("a", "a"), 0, ErrRequest, "edit 1: old and new are the same"},
		"no file":        {"g", edit("a", "b"), 0, ErrNotFound, `there is no file "g"; there is "d", "f"`},
		"no directory":   {"e/f", edit("a", "b"), 0, ErrNotFound, `there is no directory "e"`},
		"a directory":    {"d", edit("a", "b"), 0, ErrNotRegular, `"d" is a directory`},
		"over the limit": {"f", edit("a", "bc"), 3, ErrTooLarge, `"f" would be larger than the limit of 3 bytes`},
	} {
		if _, err := r.Edit(t.Context(), c.path, c.edits, c.limit, noRoom); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if _, err := r.Edit(t.Context(), "f", edit("a", "bc"), 4, noRoom); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	wantFile(t, dir, "f", "bcbc", 0o644)
}

func TestEditTakesFilesUpToItsBound(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t)
	for size, fits := range map[int]bool{wire.MaxEditFile - 1: true, wire.MaxEditFile: true, wire.MaxEditFile + 1: false} {
		name := fmt.Sprint(size)
		file(t, dir, name, "b"+strings.Repeat("a", size-1), 0o644)
		_, err := r.Edit(t.Context(), name, edit("b", "c"), 0, noRoom)
		if fits != (err == nil) || !fits && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// Memory is asked for before any is taken, and given back.
func TestEditAsksForRoom(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t)
	file(t, dir, "f", strings.Repeat("a", 1000), 0o644)
	full := errors.New("full")
	if _, err := r.Edit(t.Context(), "f", edit("a", "b"), 0, func(context.Context, int64) (func(), error) { return nil, full }); !errors.Is(err, full) {
		t.Errorf("no room: %v", err)
	}
	var asked, released int64
	_, err := r.Edit(t.Context(), "f", []wire.Edit{{Old: "a", New: "bcd", ReplaceAll: true}}, 0, func(_ context.Context, size int64) (func(), error) {
		asked += size
		return func() { released += size }, nil
	})
	if err != nil || asked < 4000 || released != asked {
		t.Errorf("%v: asked for %d, gave back %d", err, asked, released)
	}
}

// Edits at the same time all land, also beside writes.
func TestEditsAtTheSameTimeAllLand(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t)
	const n = 32
	var content strings.Builder
	for i := range n {
		fmt.Fprintf(&content, "line %d.\n", i)
	}
	file(t, dir, "f", content.String(), 0o644)
	symlink(t, dir, "f", "link")
	var done sync.WaitGroup
	for i := range n {
		done.Go(func() {
			path := []string{"f", "link", filepath.Join(dir, "f")}[i%3]
			if _, err := r.Edit(t.Context(), path, edit(fmt.Sprintf("line %d.", i), fmt.Sprintf("edited %d.", i)), 0, noRoom); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	wantFile(t, dir, "f", strings.ReplaceAll(content.String(), "line", "edited"), 0o644)
	wantNames(t, dir, "f", "link")
}

// What a command writes between an edit's read and its write is not lost.
func TestEditNoticesACommandsWrite(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t)
	file(t, dir, "f", "abc", 0o644)
	p, err := r.walk("f", false)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if _, err := p.read(3); err != nil {
		t.Fatal(err)
	}
	file(t, dir, "f", "a command's", 0o644)
	if err := p.replace([]byte("an edit's")); !errors.Is(err, ErrChanged) {
		t.Errorf("written: %v", err)
	}
	if _, err := p.read(10); !errors.Is(err, ErrChanged) {
		t.Errorf("grown: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "f")); err != nil {
		t.Fatal(err)
	}
	if err := p.replace([]byte("an edit's")); !errors.Is(err, ErrChanged) {
		t.Errorf("removed: %v", err)
	}
	wantNames(t, dir)
}

// An edit is made again when the file changed under it, and given up when it
// keeps changing.
func TestEditTriesAgain(t *testing.T) {
	t.Parallel()
	for changes, want := range map[int]error{1: nil, 2: nil, 3: ErrChanged} {
		r, dir := fixture(t)
		content := "abc"
		file(t, dir, "f", content, 0o644)
		times := 0
		_, err := r.Edit(t.Context(), "f", edit("abc", "x"), 0, func(context.Context, int64) (func(), error) {
			if times++; times <= changes {
				content += strings.Repeat("+", 2*slack)
				file(t, dir, "f", content, 0o644)
			}
			return func() {}, nil
		})
		if !errors.Is(err, want) || times != min(changes+1, maxAttempts) {
			t.Errorf("%d changes: %v after %d attempts", changes, err, times)
		}
	}
}
