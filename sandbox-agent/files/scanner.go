package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// scanner goes through a file line by line. It holds a chunk of it.
type scanner struct {
	ctx    context.Context
	src    io.ReaderAt
	size   int64
	buffer []byte
	have   []byte // read, not yet gone through
	offset int64  // of have
}

// fill reads more, if nothing is left. It returns false at the end.
func (s *scanner) fill() (bool, error) {
	if len(s.have) > 0 {
		return true, nil
	}
	if err := s.ctx.Err(); err != nil {
		return false, err
	}
	n, err := s.src.ReadAt(s.buffer[:min(int64(len(s.buffer)), s.size-s.offset)], s.offset)
	s.have = s.buffer[:n]
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read file: %w", err)
	}
	return n > 0, nil
}

func (s *scanner) advance(n int) {
	s.have = s.have[n:]
	s.offset += int64(n)
}

func (s *scanner) seek(offset int64) { s.have, s.offset = nil, offset }

// skip goes through n lines at most, and through no chunk once it went through
// limit bytes. It returns through how many, and whether that was the end.
func (s *scanner) skip(n, limit int64) (skipped int64, ended bool, err error) {
	begun := false // a line
	for start := s.offset; s.offset-start < limit; {
		more, err := s.fill()
		if err != nil || !more {
			if begun {
				skipped++
			}
			return skipped, err == nil, err
		}
		all := int64(bytes.Count(s.have, newline))
		if skipped+all >= n {
			for ; skipped < n; skipped++ {
				s.advance(bytes.IndexByte(s.have, '\n') + 1)
			}
			more, err = s.fill()
			return skipped, err == nil && !more, err
		}
		skipped += all
		begun = s.have[len(s.have)-1] != '\n'
		s.advance(len(s.have))
	}
	ended = s.offset >= s.size
	if ended && begun {
		skipped++
	}
	return skipped, ended, nil
}

var newline = []byte{'\n'}

// line appends the content of the next line to data, or, if that is longer than
// room, its beginning up to the border of a character. size is the whole
// content's, and end what comes after it: "\n", "\r\n" or nothing.
func (s *scanner) line(data []byte, room int) (_ []byte, size int64, end string, err error) {
	start := len(data)
	var last byte
	for end == "" {
		more, err := s.fill()
		if err != nil {
			return data, size, "", err
		}
		if !more {
			break
		}
		piece := s.have
		if n := bytes.IndexByte(piece, '\n'); n >= 0 {
			piece, end = piece[:n], "\n"
		}
		if len(piece) > 0 {
			last = piece[len(piece)-1]
		}
		data = append(data, piece[:min(len(piece), start+room-len(data))]...)
		size += int64(len(piece))
		s.advance(len(piece) + len(end))
	}
	if end != "" && last == '\r' {
		size, end = size-1, "\r\n"
		data = data[:min(int64(len(data)), int64(start)+size)]
	}
	if int64(len(data)-start) < size {
		data = data[:start+len(wholeRunes(data[start:]))]
	}
	return data, size, end, nil
}
