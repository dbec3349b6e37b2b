// Package splice sends a large string of a JSON answer without ever holding it
// encoded. The MCP SDK encodes an answer three times over before it writes it,
// which makes some 60 MiB of an 8 MiB file. So the answer carries a random
// placeholder, and whoever writes the answer out puts the string in its place,
// piece by piece.
package splice

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"io"
	"sync"
)

// placeholderBytes are random, and a multiple of 3, so that their base64 has no
// padding and is as unique as they are.
const placeholderBytes = 24

// piece is how much is encoded at a time; a multiple of 3 too.
const piece = 48 << 10

// Splices are the strings that one HTTP answer has placeholders for.
type Splices struct {
	mu  sync.Mutex
	all []splice
}

type splice struct {
	placeholder []byte
	write       func(io.Writer) error
}

type contextKey struct{}

// With returns a context whose answer s belongs to.
func With(ctx context.Context, s *Splices) context.Context {
	return context.WithValue(ctx, contextKey{}, s)
}

// Blob returns what to put into the answer for data that is sent in base64:
// bytes whose base64 is a placeholder, or data itself if the answer can't be
// spliced. Nobody may change data afterwards.
func Blob(ctx context.Context, data []byte) []byte {
	raw, ok := add(ctx, func(w io.Writer) error { return writeBase64(w, data) })
	if !ok {
		return data
	}
	return raw
}

// Text is Blob for data that is sent as a JSON string. It must be valid UTF-8.
func Text(ctx context.Context, data []byte) string {
	raw, ok := add(ctx, func(w io.Writer) error { return writeEscaped(w, data) })
	if !ok {
		return string(data)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

func add(ctx context.Context, write func(io.Writer) error) (raw []byte, ok bool) {
	s, ok := ctx.Value(contextKey{}).(*Splices)
	if !ok {
		return nil, false
	}
	raw = make([]byte, placeholderBytes)
	rand.Read(raw) // never fails (crypto/rand)
	placeholder := make([]byte, base64.StdEncoding.EncodedLen(len(raw)))
	base64.StdEncoding.Encode(placeholder, raw)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, splice{placeholder, write})
	return raw, true
}

// Write writes p to w with each string in place of its placeholder. p holds
// placeholders whole.
func (s *Splices) Write(w io.Writer, p []byte) error {
	s.mu.Lock()
	all := s.all
	s.mu.Unlock()
	for len(all) > 0 {
		at, which := -1, 0
		for i := range all {
			if j := bytes.Index(p, all[i].placeholder); j >= 0 && (at < 0 || j < at) {
				at, which = j, i
			}
		}
		if at < 0 {
			break
		}
		if _, err := w.Write(p[:at]); err != nil {
			return err
		}
		if err := all[which].write(w); err != nil {
			return err
		}
		p = p[at+len(all[which].placeholder):]
	}
	_, err := w.Write(p)
	return err
}

func writeBase64(w io.Writer, data []byte) error {
	buffer := make([]byte, base64.StdEncoding.EncodedLen(min(piece, len(data))))
	for len(data) > 0 {
		n := min(piece, len(data))
		encoded := buffer[:base64.StdEncoding.EncodedLen(n)]
		base64.StdEncoding.Encode(encoded, data[:n])
		if _, err := w.Write(encoded); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

const hexDigits = "0123456789abcdef"

// writeEscaped writes data as the inside of a JSON string (RFC 8259 §7).
func writeEscaped(w io.Writer, data []byte) error {
	buffer := make([]byte, 0, piece)
	for _, c := range data {
		switch {
		case c == '"' || c == '\\':
			buffer = append(buffer, '\\', c)
		case c == '\n':
			buffer = append(buffer, '\\', 'n')
		case c < ' ':
			buffer = append(buffer, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
		default:
			buffer = append(buffer, c)
		}
		if len(buffer) > piece-6 {
			if _, err := w.Write(buffer); err != nil {
				return err
			}
			buffer = buffer[:0]
		}
	}
	_, err := w.Write(buffer)
	return err
}
