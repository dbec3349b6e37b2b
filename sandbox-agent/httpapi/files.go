package httpapi

import (
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/upload"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Uploads take files; *upload.Store does.
type Uploads interface {
	Save(name string, body io.Reader, limit int64) (f wire.File, received int64, err error)
}

// KeepUploads serves uploads, whose stalls go by clock. It comes before the first
// request.
func (s *Server) KeepUploads(u Uploads, clock upload.Clock) {
	s.uploads, s.stalls = u, clock
	s.routes = append(s.routes, route{path: wire.FilesPath, query: true, methods: methods{http.MethodPost: s.upload}})
}

// upload streams a request's body to a file. A failure is one line of the log,
// which holds no name that was not made safe to show.
func (s *Server) upload(w http.ResponseWriter, r *http.Request, _ string) *Refusal {
	start := time.Now()
	file, received, refusal := s.save(w, r)
	if refusal == nil {
		writeJSON(w, http.StatusCreated, file)
		return nil
	}
	s.log.Warn("Upload failed", "session", s.session.id(), "name", file.Name, "bytes", received,
		"duration", time.Since(start).String(), "status", refusal.Status, "code", refusal.Code)
	if received == 0 {
		return refusal // net/http sees to a body that nothing was read of
	}
	refuseUnread(w, r, refusal)
	return nil
}

// lingerTime is for a caller that still sends to see that it was refused.
const lingerTime = time.Second

// refuseUnread answers a caller that may still send its body: if the connection
// were closed on that, the answer could be lost.
func refuseUnread(w http.ResponseWriter, r *http.Request, refusal *Refusal) {
	control := http.NewResponseController(w)
	w.Header().Set("Connection", "close")
	refusal.write(w)
	// Each of these fails only when the connection is gone or the body has ended.
	_ = control.Flush()
	if refusal.Code == wire.CodeStalled {
		return
	}
	_ = control.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.Copy(io.Discard, r.Body)
}

// save returns the name even if it fails, once that is known.
func (s *Server) save(w http.ResponseWriter, r *http.Request) (file wire.File, received int64, _ *Refusal) {
	raw, refusal := parseNameQuery(r.URL.RawQuery)
	if refusal != nil {
		return file, 0, refusal
	}
	name, err := upload.Name(raw)
	if err != nil {
		return file, 0, refusalOf(err)
	}
	file.Name = name
	limit, refusal := s.admitFile(r)
	if refusal != nil {
		return file, 0, refusal
	}
	saved, received, err := s.uploads.Save(name, s.patient(w, r), limit)
	if err == nil {
		return saved, received, nil
	}
	return file, received, refusalOf(err)
}

// patient is a request's body, of which each piece has its time to come.
func (s *Server) patient(w http.ResponseWriter, r *http.Request) io.Reader {
	return upload.NewPatient(r.Body, s.stalls, func() {
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // fails only when the connection is gone
	})
}

// admitFile refuses what needs no look at a request's body. limit is how many bytes
// that may have (0: any number).
func (s *Server) admitFile(r *http.Request) (limit int64, _ *Refusal) {
	limit = s.session.current().UploadBytes
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case s.commands.isClosed():
		return 0, draining()
	case err != nil || kind != wire.FileType:
		return 0, refuse(http.StatusUnsupportedMediaType, wire.CodeUnsupportedMedia, "Content-Type must be "+wire.FileType+", and the body the file's bytes")
	case limit > 0 && r.ContentLength > limit:
		return 0, tooLarge(limit)
	}
	return limit, nil
}
