package mcpserver

import (
	"unicode/utf8"

	"github.com/berth-dev/berth/gateway/artifact"
)

// margin is what is read around a part of text, to see the characters that its
// borders cut whole.
const margin = utf8.UTFMax - 1

// around is a part with its margins.
func around(part artifact.Part) artifact.Part {
	before := min(part.Offset, margin)
	return artifact.Part{Offset: part.Offset - before, Length: before + part.Length + margin}
}

// wholeCharacters finds the characters in the length bytes of data from at on: of
// one that the beginning cuts, what follows it; of one that the end cuts, what comes
// before it, unless there is nothing else. What follows these bytes in data, up to
// margin, and what comes before is looked at alone. It tells whether all is UTF-8.
func wholeCharacters(data []byte, at, length int) (begin, end int, ok bool) {
	begin = at
	if at < len(data) && !utf8.RuneStart(data[at]) {
		start := startOf(data, at)
		if start < 0 {
			return 0, 0, false
		}
		begin = start + size(data[start:])
		if begin <= at {
			return 0, 0, false // it ends before: the byte belongs to nothing
		}
	}
	end = min(at+length, len(data))
	if end < len(data) && !utf8.RuneStart(data[end]) {
		start := startOf(data, end)
		if start < 0 {
			return 0, 0, false
		}
		end = start
	}
	if end <= begin {
		end = begin + size(data[begin:])
	}
	return begin, end, utf8.Valid(data[begin:end])
}

// startOf is where the character begins that a byte continues; negative if none does.
func startOf(data []byte, at int) int {
	for start := at - 1; start >= 0 && start >= at-margin; start-- {
		if utf8.RuneStart(data[start]) {
			return start
		}
	}
	return -1
}

// size is how many bytes the first character of data has.
func size(data []byte) int {
	_, n := utf8.DecodeRune(data)
	return n
}
