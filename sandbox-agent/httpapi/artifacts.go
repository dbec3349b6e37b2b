package httpapi

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/artifact"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

func (s *Server) export(w http.ResponseWriter, r *http.Request, _ string) *Refusal {
	var req wire.ExportRequest
	if refusal := readJSON(w, r, wire.MaxSmallBody, &req); refusal != nil {
		return refusal
	}
	limits := s.session.current()
	taken, err := s.artifacts.Take(r.Context(), artifact.Request{
		Path: req.Path, Archive: req.Archive, Digest: req.Digest,
		Limit: limits.ArtifactBytes, Total: limits.ArtifactTotalBytes,
	})
	if err != nil {
		return refusalOf(err)
	}
	writeJSON(w, http.StatusCreated, taken)
	return nil
}

func (s *Server) read(w http.ResponseWriter, r *http.Request, id string) *Refusal {
	if refusal := noBody(r); refusal != nil {
		return refusal
	}
	reader, err := s.artifacts.Open(id)
	if err != nil {
		return refusalOf(err)
	}
	defer reader.Close()
	h := w.Header()
	h.Set("ETag", reader.ETag())
	h.Set("Content-Type", reader.MIMEType)
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": reader.Name}))
	h.Set("Berth-Expires-In", strconv.Itoa(reader.ExpiresIn))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if sum, err := hex.DecodeString(reader.SHA256); err == nil && len(sum) > 0 {
		h.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum)+":")
	}
	http.ServeContent(pieces{w}, r, "", time.Time{}, content{reader.SectionReader})
	return nil
}

// piece is how much of an artifact is read at a time: net/http's own 32 KiB cost a
// large one half of its rate.
const piece = 256 << 10

// pieces writes what it reads in pieces.
type pieces struct{ http.ResponseWriter }

// ReadFrom implements io.ReaderFrom, which io.Copy looks for.
func (p pieces) ReadFrom(r io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{p.ResponseWriter}, r, make([]byte, piece))
}

// content breaks the connection when an artifact turns out to be no longer what it
// was: its reader must not take what came for all there is.
type content struct{ *io.SectionReader }

func (c content) Read(p []byte) (int, error) {
	n, err := c.SectionReader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		panic(http.ErrAbortHandler)
	}
	return n, err
}

func (s *Server) drop(w http.ResponseWriter, r *http.Request, id string) *Refusal {
	if refusal := noBody(r); refusal != nil {
		return refusal
	}
	if err := s.artifacts.Drop(id); err != nil {
		return refusalOf(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
