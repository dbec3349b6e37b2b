package httpapi

import (
	"errors"
	"io"
	"net/http"
)

// whole breaks the connection when what it reads has shrunk, or is no longer what it
// was: a reader must not take what came for all there is.
type whole struct{ *io.SectionReader }

// Read implements io.Reader. It panics with http.ErrAbortHandler.
func (w whole) Read(p []byte) (int, error) {
	n, err := w.SectionReader.Read(p)
	if at, _ := w.Seek(0, io.SeekCurrent); err != nil && (!errors.Is(err, io.EOF) || at < w.Size()) {
		panic(http.ErrAbortHandler)
	}
	return n, err
}
