package progress

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// half is how much is kept of either end of what is too long for a message.
const half = MaxMessage / 2

// gapRoom is more than the line about what is left out takes.
const gapRoom = 64

// pending is output that has not been told: its first half bytes and its last.
type pending struct {
	head, tail []byte
	total      int64
}

func (p *pending) add(data []byte) {
	p.total += int64(len(data))
	if room := half - len(p.head); room > 0 {
		n := min(room, len(data))
		p.head = append(p.head, data[:n]...)
		data = data[n:]
	}
	if len(data) > half {
		data = data[len(data)-half:]
	}
	if over := len(p.tail) + len(data) - half; over > 0 {
		p.tail = append(p.tail[:0], p.tail[over:]...)
	}
	p.tail = append(p.tail, data...)
}

// text is at most MaxMessage bytes of valid UTF-8: all, or both ends with a line
// between that says how many bytes are missing.
func (p *pending) text() string {
	if p.total <= MaxMessage {
		if all := valid(append(append(make([]byte, 0, p.total), p.head...), p.tail...)); len(all) <= MaxMessage {
			return all
		}
	}
	head := prefix(p.head, half-gapRoom)
	tail := suffix(p.tail, half)
	omitted := p.total - int64(len(head)) - int64(len(tail))
	return valid(head) + fmt.Sprintf("\n[... %d bytes omitted ...]\n", omitted) + valid(tail)
}

// prefix is as many of b's first whole characters as take room bytes as text.
func prefix(b []byte, room int) []byte {
	i := 0
	for i < len(b) && utf8.FullRune(b[i:]) {
		r, n := utf8.DecodeRune(b[i:])
		if utf8.RuneLen(r) > room {
			break
		}
		room -= utf8.RuneLen(r)
		i += n
	}
	return b[:i]
}

// suffix is prefix from the other end. b may begin within a character.
func suffix(b []byte, room int) []byte {
	for range utf8.UTFMax - 1 {
		if len(b) > 0 && !utf8.RuneStart(b[0]) {
			b = b[1:]
		}
	}
	i := len(b)
	for i > 0 {
		r, n := utf8.DecodeLastRune(b[:i])
		if utf8.RuneLen(r) > room {
			break
		}
		room -= utf8.RuneLen(r)
		i -= n
	}
	return b[i:]
}

// valid makes U+FFFD of each byte that is not UTF-8, as the result does.
func valid(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		s.WriteRune(r)
		b = b[n:]
	}
	return s.String()
}

// unfinished is how many bytes at b's end are the beginning of a character.
func unfinished(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}
