package httpapi

import (
	"encoding/base64"
	"encoding/hex"
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
	if err := r.Context().Err(); err != nil {
		s.forget(taken)
		return gone(err)
	}
	writeJSON(w, http.StatusCreated, taken)
	if http.NewResponseController(w).Flush() != nil {
		s.forget(taken)
	}
	return nil
}

// forget drops an artifact whose id nobody was told, so that it takes no place.
func (s *Server) forget(a wire.Artifact) {
	_ = s.artifacts.Drop(a.ID) // fails only when it is gone already
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
	http.ServeContent(w, r, "", time.Time{}, whole{reader.SectionReader})
	return nil
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
