package files

import (
	"context"
	"errors"
	"io"
	"math"
	"sync"
	"unicode/utf8"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Lines chooses lines: from the first (1), Count of them at most (0: no bound)
// and Limit bytes.
type Lines struct {
	First int64
	Count int64
	Limit int
}

// maxCounted is how much is read beyond the lines that were asked for, to say how
// many there are.
const maxCounted = 256 << 20

const chunk = 128 << 10

var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// ReadLines reads lines of a file. It ends early, with ctx's error, when ctx does.
func (f *File) ReadLines(ctx context.Context, want Lines) ([]byte, error) {
	if f.Facts.Encoding != wire.EncodingUTF8 && f.Facts.Encoding != wire.Encoding8Bit {
		return nil, refuse(ErrNotText, "%s is not text that has lines, but %s (%s, %d bytes): read it by bytes, or convert it by a command",
			quote(f.shown), f.Facts.Encoding, f.Facts.MIMEType, f.Facts.Size)
	}
	data, facts, err := readLines(ctx, f.File, f.Facts.Size, want)
	if errors.Is(err, errBeyond) {
		return nil, refuse(ErrOutOfRange, "%s has %d lines: there is no line %d", quote(f.shown), *facts.Total, want.First)
	}
	if err != nil {
		return nil, err
	}
	f.Facts.Lines = facts
	if !utf8.Valid(data) {
		f.Facts.Encoding = wire.Encoding8Bit
	}
	return data, nil
}

// errBeyond is returned for a first line beyond the last.
var errBeyond = errors.New("there is no such line")

// readLines reads the lines that are wanted of the first size bytes of src.
func readLines(ctx context.Context, src io.ReaderAt, size int64, want Lines) ([]byte, *wire.FileLineFacts, error) {
	buffer := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buffer)
	s := &scanner{ctx: ctx, src: src, size: size, buffer: buffer[:]}
	before, ended, err := s.skip(want.First-1, math.MaxInt64)
	if err != nil {
		return nil, nil, err
	}
	facts := &wire.FileLineFacts{First: want.First, Offset: s.offset}
	if ended && want.First > 1 {
		facts.Total = &before
		return nil, facts, errBeyond
	}
	data, err := s.collect(want, facts)
	if err != nil {
		return nil, nil, err
	}
	return data, facts, s.rest(facts)
}

// collect reads lines until there are enough.
func (s *scanner) collect(want Lines, facts *wire.FileLineFacts) ([]byte, error) {
	data := make([]byte, 0, min(int64(want.Limit+wire.MaxFileLine), s.size-s.offset)+int64(len("\r\n")))
	for want.Count == 0 || facts.Count < want.Count {
		more, err := s.fill()
		if err != nil || !more {
			return data, err
		}
		start, held := s.offset, len(data)
		var size int64
		var end string
		if data, size, end, err = s.line(data, wire.MaxFileLine); err != nil {
			return nil, err
		}
		if over := len(data) + len(end) - want.Limit; over > 0 {
			if facts.Count > 0 {
				s.seek(start)
				return data[:held], nil
			}
			data = wholeRunes(data[:max(0, len(data)-over)])
		}
		if kept := int64(len(data) - held); kept < size {
			facts.CutCount++
			if facts.CutCount <= wire.MaxCutLines {
				facts.Cut = append(facts.Cut, wire.CutLine{Line: facts.First + facts.Count, Offset: start, Size: size, Kept: kept})
			}
		}
		data = append(data, end...)
		facts.Count++
		facts.CRLF = facts.CRLF || end == "\r\n"
	}
	return data, nil
}

// rest says what follows the lines that were read.
func (s *scanner) rest(facts *wire.FileLineFacts) error {
	total := facts.First - 1 + facts.Count
	more, err := s.fill()
	if err != nil {
		return err
	}
	if more {
		facts.Next, facts.NextOffset = total+1, s.offset
	}
	after, ended, err := s.skip(math.MaxInt64, maxCounted)
	if ended {
		total += after
		facts.Total = &total
	}
	return err
}
