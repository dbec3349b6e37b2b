package client

import (
	"fmt"
	"regexp"
	"unicode/utf8"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

var fileMode = regexp.MustCompile(`^[0-7]{4}$`)

func checkFacts(f *FileFacts) error {
	switch f.Encoding {
	case EncodingUTF8, EncodingUTF16LE, EncodingUTF16BE, Encoding8Bit, EncodingBinary:
	default:
		return badAnswer("unknown encoding")
	}
	if f.Size < 0 || !fileMode.MatchString(f.Mode) {
		return badAnswer("file size or mode is impossible")
	}
	return checkMIMEType(f.MIMEType)
}

// checkLines refuses facts that don't fit what was asked, or the body.
func checkLines(c *FileContent, asked Lines) error {
	l := c.Lines
	switch {
	case l == nil:
		return badAnswer("lines without their facts")
	case l.First != max(asked.First, 1), l.Count < 0, l.Offset < 0, asked.Count > 0 && l.Count > asked.Count:
		return badAnswer("not the lines that were asked for")
	case l.Next != 0 && (l.Next != l.First+l.Count || l.NextOffset <= l.Offset):
		return badAnswer("lines go on where they can't")
	case l.Total != nil && *l.Total < l.First+l.Count-1:
		return badAnswer("more lines than there are")
	case len(l.Cut) > wire.MaxCutLines || l.CutCount < int64(len(l.Cut)) || l.CutCount > l.Count:
		return badAnswer("an impossible number of cut lines")
	}
	for _, cut := range l.Cut {
		if cut.Line < l.First || cut.Line >= l.First+l.Count || cut.Offset < l.Offset || cut.Kept < 0 || cut.Size < cut.Kept {
			return badAnswer("an impossible cut line")
		}
	}
	return nil
}

// checkBytes finds out where the bytes of an answer begin, and refuses those
// that were not asked for.
func checkBytes(c *FileContent, part string, asked Span) error {
	if part == "" {
		if int64(len(c.Data)) != c.Size || asked.Offset > 0 && c.Size > 0 { // of nothing there is no part
			return badAnswer("not the range that was asked for")
		}
		return nil
	}
	r := &Reading{Length: int64(len(c.Data))}
	if err := r.parseRange(part); err != nil {
		return err
	}
	if r.Size != c.Size || r.Offset != asked.Offset || r.Length > asked.Length {
		return badAnswer("not the range that was asked for")
	}
	c.Offset = r.Offset
	return nil
}

// checkFilePath refuses what no path is. It comes from the sandbox: who shows it
// escapes it.
func checkFilePath(path string) error {
	if path == "" || len(path) > 3*wire.MaxPath || !utf8.ValidString(path) { // U+FFFD takes three bytes
		return badAnswer("a file's path is malformed")
	}
	return nil
}

func checkWritten(w *WrittenFile, sent int64) error {
	if w.Size != sent || !fileMode.MatchString(w.Mode) {
		return badAnswer("file size or mode is not what was sent")
	}
	return checkFilePath(w.Path)
}

func checkEdited(e *EditedFile, edits int) error {
	if e.Size < 0 || len(e.Edits) != edits {
		return badAnswer("not the edits that were asked for")
	}
	for _, made := range e.Edits {
		if made.Replaced < 1 || made.Line < 1 {
			return badAnswer("an impossible edit")
		}
	}
	return checkFilePath(e.Path)
}

// checkList refuses more than was asked for, too: who asks for less because it was
// too much would never be done.
func checkList(l *FileList, asked int) error {
	if asked <= 0 {
		asked = wire.DefaultListEntries
	}
	if len(l.Entries) > min(asked, wire.MaxListEntries) || len(l.Next) > 2*wire.MaxPath || len(l.Notice) > wire.MaxPath {
		return badAnswer("a list is too long")
	}
	if err := checkFilePath(l.Path); err != nil {
		return err
	}
	for i := range l.Entries {
		if err := checkEntry(&l.Entries[i]); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
	}
	return nil
}

func checkEntry(e *FileEntry) error {
	switch e.Type {
	case wire.TypeFile, wire.TypeDirectory, wire.TypeSymlink, wire.TypeFIFO, wire.TypeSocket, wire.TypeDevice:
	default:
		return badAnswer("unknown type of a file")
	}
	if e.Size < 0 || !fileMode.MatchString(e.Mode) || len(e.Target) > 3*wire.MaxPath {
		return badAnswer("file size, mode or target is impossible")
	}
	return checkFilePath(e.Path)
}
