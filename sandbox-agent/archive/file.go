package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// bufferSize is also the size up to which a file is read before it is announced.
const bufferSize = 256 << 10

// file writes a regular file of st.Size bytes: more are not looked at. One that
// turns out to be shorter is as long as it is while that can still be said.
func (w *walk) file(f *os.File, st *unix.Stat_t, path string) error {
	if st.Size > w.left {
		return ErrBytes
	}
	w.left -= st.Size
	begin, err := io.ReadFull(f, w.buffer[:min(st.Size, bufferSize)])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("read: %w", bare(err))
	}
	h := header(tar.TypeReg, path, st)
	h.Size = st.Size
	if begin < bufferSize {
		h.Size = int64(begin)
	}
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	if _, err := w.tar.Write(w.buffer[:begin]); err != nil {
		return err
	}
	if err := w.rest(f, h.Size-int64(begin)); err != nil {
		return err
	}
	var after unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &after); err != nil || after.Size != st.Size || after.Mtim != st.Mtim || after.Ctim != st.Ctim {
		w.report.changed.add(path)
	}
	return nil
}

// rest writes the next n bytes of f.
func (w *walk) rest(f *os.File, n int64) error {
	for n > 0 {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		got, err := f.Read(w.buffer[:min(n, bufferSize)])
		switch {
		case errors.Is(err, io.EOF):
			return ErrShrank
		case err != nil:
			return fmt.Errorf("read: %w", bare(err))
		}
		if _, err := w.tar.Write(w.buffer[:got]); err != nil {
			return err
		}
		n -= int64(got)
	}
	return nil
}

// header says what an entry is: mode and time of change, and no owner. Times are
// whole seconds, as most programs that extract know them.
func header(kind byte, path string, st *unix.Stat_t) *tar.Header {
	h := &tar.Header{Typeflag: kind, Name: path, Mode: int64(st.Mode & 0o7777), ModTime: time.Unix(st.Mtim.Sec, 0)}
	if !utf8.ValidString(path) {
		h.PAXRecords = map[string]string{"hdrcharset": "BINARY"}
	}
	return h
}
