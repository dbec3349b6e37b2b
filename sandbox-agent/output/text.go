package output

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Text is a stream as an answer carries it.
type Text struct {
	String  string
	Omitted int64 // bytes of the stream that String leaves out
}

// Encode returns both streams as valid UTF-8 that costs at most budget bytes
// in an answer. One that costs less than half leaves the rest to the other.
// What is left out is cut from the middle, at the border of a character, and a
// line says how much, and where all of it is. A stream that must be cut goes to
// its log, also when all of it was kept.
func Encode(stdout, stderr *Stream, budget int) (out, err Text) {
	half := budget / 2
	costOut, costErr := stdout.cost(), stderr.cost()
	switch {
	case costOut+costErr <= budget:
		return stdout.text(costOut), stderr.text(costErr)
	case costErr <= half:
		return stdout.text(budget - costErr), stderr.text(costErr)
	case costOut <= half:
		return stdout.text(costOut), stderr.text(budget - costOut)
	}
	return stdout.text(half), stderr.text(half)
}

// noteCost is more than the line about omitted bytes costs.
const noteCost = 480

func (s *Stream) cost() int {
	c := cost(s.Head) + cost(s.Tail)
	if s.Omitted() > 0 {
		c += noteCost
	}
	return c
}

func (s *Stream) text(budget int) Text {
	head, tail := s.Head, s.Tail
	if s.Omitted() == 0 && s.cost() <= budget {
		return Text{String: Valid(head)}
	}
	s.spill()
	if len(tail) == 0 { // cut in the middle
		m := len(head) / 2
		head, tail = head[:m], head[m:]
	}
	budget = max(0, budget-noteCost)
	head = prefix(head, max(budget/2, budget-cost(tail)))
	tail = suffix(tail, budget-cost(head))
	omitted := s.Total - int64(len(head)) - int64(len(tail))
	return Text{
		String:  Valid(head) + s.note(omitted) + Valid(tail),
		Omitted: omitted,
	}
}

// note is the line that stands for what is left out.
func (s *Stream) note(omitted int64) string {
	where := ""
	if s.Log != nil && s.Log.Path() != "" {
		where = "; all of it is in " + s.Log.Path()
		if s.Log.Truncated() {
			where = fmt.Sprintf("; the first %d bytes are in %s", s.Log.Size(), s.Log.Path())
		}
	}
	return fmt.Sprintf("\n[... %d bytes omitted%s ...]\n", omitted, where)
}

// cost is an upper bound of what b takes in an answer that holds it twice: as
// a JSON string, and as a JSON string within a JSON string.
func cost(b []byte) int {
	total := 0
	for i := 0; i < len(b); {
		c, n := costAt(b[i:])
		total += c
		i += n
	}
	return total
}

func costAt(b []byte) (cost, size int) {
	switch c := b[0]; {
	case c == '"' || c == '\\':
		return 2 + 4, 1
	case c == '\n' || c == '\r' || c == '\t':
		return 2 + 3, 1
	case c < 0x20 || c == 0x7f || c == '<' || c == '>' || c == '&':
		return 6 + 7, 1 // \u0001, \\u0001
	case c < utf8.RuneSelf:
		return 1 + 1, 1
	}
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
		return 6 + 7, n
	}
	return 2 * n, n
}

// prefix returns the longest beginning of b, up to a character's border, that
// costs at most room.
func prefix(b []byte, room int) []byte {
	i := 0
	for i < len(b) {
		c, n := costAt(b[i:])
		if !utf8.FullRune(b[i:]) || c > room {
			break
		}
		room -= c
		i += n
	}
	return b[:i]
}

// suffix is prefix from the other end.
func suffix(b []byte, room int) []byte {
	i := len(b)
	for i > 0 {
		_, n := utf8.DecodeLastRune(b[:i])
		c, _ := costAt(b[i-n : i])
		if c > room {
			break
		}
		room -= c
		i -= n
	}
	for range utf8.UTFMax - 1 { // what is left of a character that the cut before b split
		if i < len(b) && !utf8.RuneStart(b[i]) {
			i++
		}
	}
	return b[i:]
}

// Valid returns b as text in which each byte that is not UTF-8 is U+FFFD.
func Valid(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	s.Grow(len(b) + len(b)/8)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		s.WriteRune(r)
		b = b[n:]
	}
	return s.String()
}
