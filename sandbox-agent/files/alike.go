package files

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/berth-dev/berth/sandbox-agent/filename"
	"github.com/berth-dev/berth/sandbox-agent/openat"
)

const (
	// maxAlike is how many names are looked at for ones that are alike.
	maxAlike = 2000
	// shownAlike is how many of those are told.
	shownAlike = 3
)

// alike tells, for a message, which names of a directory may have been meant.
func alike(dir int, name string) string {
	names, err := firstNames(dir, maxAlike)
	if err != nil {
		return "" // the message does without
	}
	type candidate struct {
		name     string
		distance int
	}
	var near []candidate
	for _, n := range names {
		if d := distance(strings.ToLower(n), strings.ToLower(name)); d <= max(1, len(name)/3) && !filename.IsTemporary(n) {
			near = append(near, candidate{n, d})
		}
	}
	slices.SortFunc(near, func(a, b candidate) int {
		if a.distance != b.distance {
			return a.distance - b.distance
		}
		return strings.Compare(a.name, b.name)
	})
	var told []string
	for _, c := range near[:min(len(near), shownAlike)] {
		told = append(told, quote(c.name))
	}
	if len(told) == 0 {
		return ""
	}
	return "; there is " + strings.Join(told, ", ")
}

// firstNames returns at most so many names of a directory.
func firstNames(dir int, limit int) ([]string, error) {
	f, err := openat.Directory(dir, ".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(limit)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

// distance is how many bytes must be added, removed or changed to make b of a
// (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0] // of the row above, one to the left
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, before+1, row[j]+1)
		}
	}
	return row[len(b)]
}
