package session

import (
	"bytes"
	"io"
	"net"
	"testing"
)

// written knows how much each Write had.
type written struct {
	net.Conn
	sizes []int
	all   bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.sizes = append(w.sizes, len(p))
	return w.all.Write(p)
}

func TestFilesAreSentInLargePieces(t *testing.T) {
	t.Parallel()
	conn := &written{}
	data := bytes.Repeat([]byte("0123456789abcdef"), 3*filePiece/32) // one and a half
	n, err := fileConn{conn}.ReadFrom(struct{ io.Reader }{bytes.NewReader(data)})
	if n != int64(len(data)) || err != nil || !bytes.Equal(conn.all.Bytes(), data) {
		t.Errorf("%d of %d bytes were sent: %v", conn.all.Len(), n, err)
	}
	if len(conn.sizes) != 2 || conn.sizes[0] != filePiece {
		t.Errorf("in pieces of %v bytes, want %d first", conn.sizes, filePiece)
	}
}
