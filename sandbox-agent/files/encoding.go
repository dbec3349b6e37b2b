package files

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/berth-dev/berth/sandbox-agent/filetype"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// sniffed is how much of a file its encoding is guessed from.
const sniffed = 8 << 10

// kindOf guesses what a file holds.
func kindOf(path string, content io.ReaderAt) (mimeType, encoding string, err error) {
	head := make([]byte, sniffed)
	n, err := content.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", "", err
	}
	mimeType, text := filetype.Of(path, bytes.NewReader(head[:n]))
	return mimeType, encodingOf(head[:n], n == sniffed, text), nil
}

// encodingOf guesses how text is encoded from the beginning of it, which may end
// within a character if there is more. textual is what the type says.
func encodingOf(head []byte, more, textual bool) string {
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe\x00\x00")): // UTF-32
		return wire.EncodingBinary
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		return wire.EncodingUTF16LE
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		return wire.EncodingUTF16BE
	case bytes.IndexByte(head, 0) >= 0:
		return wire.EncodingBinary
	}
	if more {
		head = wholeRunes(head)
	}
	switch {
	case utf8.Valid(head) && (textual || len(head) == 0):
		return wire.EncodingUTF8
	case textual:
		return wire.Encoding8Bit
	}
	return wire.EncodingBinary
}

// wholeRunes returns b without the beginning of a character at its end.
func wholeRunes(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && len(b)-i < utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}
