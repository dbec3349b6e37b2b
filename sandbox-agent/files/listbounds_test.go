package files

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

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
