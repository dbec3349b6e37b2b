package files

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

const (
	// maxMatches is how many matches are counted where one is wanted.
	maxMatches = 100
	// shownMatches is how many of their lines are told.
	shownMatches = 10
)

// apply makes edits to content, which it may overwrite, as long as the result has
// at most limit bytes. name is what messages call it.
func apply(content []byte, edits []wire.Edit, limit int64, name string) ([]byte, []wire.EditMade, error) {
	var spare []byte
	made := make([]wire.EditMade, 0, len(edits))
	for i, e := range edits {
		old := []byte(e.Old)
		first := bytes.Index(content, old)
		if first < 0 {
			return nil, nil, refuse(ErrNoMatch, "%sold is not in %s: %s", number(i, edits), quote(name), explain(content, e))
		}
		n := 1
		if e.ReplaceAll {
			n = bytes.Count(content, old)
		} else if at := matches(content, old, first); len(at) > 1 {
			return nil, nil, refuse(ErrManyMatches, "%sold is in %s %s: give more of what surrounds the one that is meant, or set replace_all",
				number(i, edits), quote(name), times(content, at))
		}
		size := len(content) + n*(len(e.New)-len(old))
		if int64(size) > limit {
			return nil, nil, tooLarge(name, limit)
		}
		if cap(spare) < size {
			spare = make([]byte, 0, min(int64(size)+int64(size)/8, limit)) // the next edits may add a little each
		}
		made = append(made, wire.EditMade{Replaced: n, Line: lineAt(content, first)})
		content, spare = substitute(spare[:0], content, old, e.New, n), content
	}
	return content, made, nil
}

// number tells which edit a message is about, if there are several.
func number(i int, edits []wire.Edit) string {
	if len(edits) == 1 {
		return ""
	}
	return fmt.Sprintf("edit %d of %d: ", i+1, len(edits))
}

// substitute appends content to out, with the first n of old replaced.
func substitute(out, content, old []byte, replacement string, n int) []byte {
	for range n {
		at := bytes.Index(content, old)
		out = append(append(out, content[:at]...), replacement...)
		content = content[at+len(old):]
	}
	return append(out, content...)
}

// matches returns where old is in content, at most maxMatches times, also where
// it overlaps itself.
func matches(content, old []byte, first int) (at []int) {
	for next := first; len(at) < maxMatches; {
		at = append(at, next)
		found := bytes.Index(content[next+1:], old)
		if found < 0 {
			break
		}
		next += 1 + found
	}
	return at
}

func times(content []byte, at []int) string {
	var lines []string
	for _, offset := range at[:min(len(at), shownMatches)] {
		lines = append(lines, fmt.Sprint(lineAt(content, offset)))
	}
	s := fmt.Sprintf("%d times", len(at))
	if len(at) == maxMatches {
		s += " or more"
	}
	s += ", at lines " + strings.Join(lines, ", ")
	if len(at) > shownMatches {
		s += ", ..."
	}
	return s
}

// lineAt is the number of the line that an offset is in.
func lineAt(content []byte, offset int) int64 {
	return int64(bytes.Count(content[:offset], newline)) + 1
}
