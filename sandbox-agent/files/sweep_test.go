package files

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// What a killed agent left is removed by the next write to its directory, once
// it is an hour old; nothing else is, and one directory is searched every 10
// minutes at most.
func TestAWriteSweepsWhatAKilledAgentLeft(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t)
	now := time.Now()
	r.store.sweeps.now = func() time.Time { return now }
	hex := strings.Repeat("0f", 8)
	leave := func(name string, age time.Duration) {
		file(t, dir, name, "", 0o644)
		if err := os.Chtimes(filepath.Join(dir, name), time.Time{}, now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	there := func(in string) (names []string) {
		entries, err := os.ReadDir(filepath.Join(dir, in))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	old, young := ".a.write-"+hex, ".b.write-"+hex
	for _, in := range []string{"d", "e"} {
		leave(in+"/"+old, time.Hour+2*time.Second)
		leave(in+"/"+young, time.Hour-2*time.Second)
		leave(in+"/.bashrc", 2*time.Hour)
	}
	write := func(path string) {
		t.Helper()
		if _, _, err := r.Write(path, strings.NewReader("x"), 0); err != nil {
			t.Fatal(err)
		}
	}
	write("d/f")
	if got, want := there("d"), []string{young, ".bashrc", "f"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := there("e"), []string{old, young, ".bashrc"}; !slices.Equal(got, want) {
		t.Errorf("elsewhere %q, want %q", got, want)
	}
	now = now.Add(sweepEvery - 1)
	write("d/f")
	if got := there("d"); !slices.Contains(got, young) {
		t.Errorf("%q: it was searched within 10 minutes", got)
	}
	now = now.Add(1)
	write("d/f")
	if got, want := there("d"), []string{".bashrc", "f"}; !slices.Equal(got, want) {
		t.Errorf("10 minutes later %q, want %q", got, want)
	}
}

// However many directories are written to, few are remembered.
func TestSweepsAreBounded(t *testing.T) {
	t.Parallel()
	s := sweeps{now: time.Now, swept: map[swept]time.Time{}}
	for i := range uint64(3 * sweptKept) {
		if d := (swept{1, i}); !s.due(d) || s.due(d) {
			t.Fatalf("directory %d", i)
		}
		if len(s.swept) > sweptKept {
			t.Fatalf("%d are remembered", len(s.swept))
		}
	}
}
