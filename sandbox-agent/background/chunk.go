package background

import "unicode/utf8"

// border returns how many bytes of b, at most about limit, are given to a
// reader: up to the border of a character, and one character at least if there
// is a whole one. Where b is longer than limit, it is so by utf8.UTFMax-1 bytes
// or goes on to the stream's end. more says that the stream may go on after b.
func border(b []byte, limit int, more bool) int {
	if len(b) <= limit {
		if more {
			return len(b) - incomplete(b)
		}
		return len(b)
	}
	for i := limit - 1; i >= max(0, limit-utf8.UTFMax); i-- {
		if !utf8.RuneStart(b[i]) {
			continue
		}
		// The last character that begins before the limit.
		_, size := utf8.DecodeRune(b[i:])
		switch {
		case more && !utf8.FullRune(b[i:]), i+size > limit && i > 0:
			return i
		case i+size > limit:
			return size
		}
		return limit
	}
	return limit
}

// incomplete is how many bytes at the end of b begin a character that is not
// all there.
func incomplete(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// rest is how many bytes at the beginning of b end a character that began
// before.
func rest(b []byte) int {
	n := 0
	for n < len(b) && n < utf8.UTFMax-1 && !utf8.RuneStart(b[n]) {
		n++
	}
	return n
}
