package httpapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/files"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// KeepFiles serves the file tools. It comes after KeepUploads, whose route it
// shares, and before the first request.
func (s *Server) KeepFiles(f *files.Store) {
	s.files, s.edits, s.smallEdits = f, make(chan struct{}, maxLargeEdits), make(chan struct{}, maxSmallEdits)
	shared, _ := s.find(wire.FilesPath)
	shared.methods[http.MethodGet] = s.readFile
	s.routes = append(s.routes,
		route{path: wire.FilePath, query: true, methods: methods{http.MethodPut: s.writeFile}},
		route{path: wire.EditPath, query: true, methods: methods{http.MethodPost: s.editFile}},
		route{path: wire.ListPath, query: true, methods: methods{http.MethodGet: s.listFiles}},
	)
}

// reach is what the session's file tools reach.
func (s *Server) reach() (*files.Reach, *Refusal) {
	reach, err := s.files.Within(s.session.fileRoots())
	if err != nil {
		return nil, refusalOf(err)
	}
	return reach, nil
}

func (s *Server) readFile(w http.ResponseWriter, r *http.Request, _ string) *Refusal {
	if refusal := noBody(r); refusal != nil {
		return refusal
	}
	q, refusal := parseReadQuery(r.URL.RawQuery)
	if refusal != nil {
		return refusal
	}
	reach, refusal := s.reach()
	if refusal != nil {
		return refusal
	}
	defer reach.Done()
	f, err := reach.Open(q.path)
	if err != nil {
		return refusalOf(err)
	}
	defer f.Close()
	if q.lines != nil {
		return s.readLines(w, r, f, *q.lines)
	}
	if refusal := beyond(r.Header.Get("Range"), f.Facts.Size); refusal != nil {
		return refusal
	}
	setFacts(w.Header(), f)
	http.ServeContent(w, r, "", time.Time{}, whole{io.NewSectionReader(f, 0, f.Facts.Size)})
	return nil
}

func (s *Server) readLines(w http.ResponseWriter, r *http.Request, f *files.File, lines files.Lines) *Refusal {
	held, err := s.unread.take(r.Context(), 3*int64(lines.Limit+wire.MaxFileLine)) // and those before, until they are collected
	if err != nil {
		return gone(err)
	}
	defer held.release()
	data, err := f.ReadLines(r.Context(), lines)
	if err != nil {
		return refusalOf(err)
	}
	setFacts(w.Header(), f)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data) // a caller that is gone isn't told
	return nil
}

// gone answers a caller who gave up, if only for the log.
func gone(err error) *Refusal {
	return refuse(http.StatusRequestTimeout, wire.CodeStalled, "the caller gave up: "+err.Error())
}

func setFacts(h http.Header, f *files.File) {
	h.Set(wire.FactsHeader, string(wire.Encode(f.Facts)))
	h.Set("Content-Type", f.Facts.MIMEType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
}

var rangeStart = regexp.MustCompile(`^bytes=([0-9]{1,18})-[0-9]*$`)

// beyond refuses a range that begins beyond the end, in words: net/http has none.
func beyond(header string, size int64) *Refusal {
	m := rangeStart.FindStringSubmatch(header)
	if m == nil || size == 0 {
		return nil
	}
	if first, err := strconv.ParseInt(m[1], 10, 64); err != nil || first < size {
		return nil
	}
	return refuse(http.StatusRequestedRangeNotSatisfiable, wire.CodeOutOfRange, fmt.Sprintf("the file has %d bytes: there is no byte %s", size, m[1]))
}

// writeFile streams a request's body to a file. A failure is one line of the log,
// which holds no path.
func (s *Server) writeFile(w http.ResponseWriter, r *http.Request, _ string) *Refusal {
	start := time.Now()
	written, received, refusal := s.putFile(w, r)
	if refusal == nil {
		status := http.StatusOK
		if written.Created {
			status = http.StatusCreated
		}
		writeJSON(w, status, written)
		return nil
	}
	s.log.Warn("File write failed", "session", s.session.id(), "bytes", received,
		"duration", time.Since(start).String(), "status", refusal.Status, "code", refusal.Code)
	if received == 0 {
		return refusal // net/http sees to a body that nothing was read of
	}
	refuseUnread(w, r, refusal)
	return nil
}

func (s *Server) putFile(w http.ResponseWriter, r *http.Request) (written wire.WrittenFile, received int64, _ *Refusal) {
	path, refusal := parsePathQuery(r.URL.RawQuery)
	if refusal != nil {
		return written, 0, refusal
	}
	limit, refusal := s.admitFile(r)
	if refusal != nil {
		return written, 0, refusal
	}
	reach, refusal := s.reach()
	if refusal != nil {
		return written, 0, refusal
	}
	defer reach.Done()
	written, received, err := reach.Write(path, s.patient(w, r), limit)
	if err != nil {
		return written, received, refusalOf(err)
	}
	return written, received, nil
}

const (
	// largeEdit is a request to edit of which maxLargeEdits are held at a time, and
	// maxSmallEdits of others: beside the files, for which unread has room, it is held
	// itself.
	largeEdit     = 64 << 10
	maxLargeEdits = 2
	maxSmallEdits = 16
)

func (s *Server) editFile(w http.ResponseWriter, r *http.Request, _ string) *Refusal {
	path, refusal := parsePathQuery(r.URL.RawQuery)
	if refusal != nil {
		return refusal
	}
	if s.commands.isClosed() {
		return draining()
	}
	turns := s.smallEdits
	if r.ContentLength < 0 || r.ContentLength > largeEdit {
		turns = s.edits
	}
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
	case <-r.Context().Done():
		return gone(r.Context().Err())
	}
	var req wire.EditRequest
	if refusal := readJSON(w, r, wire.MaxEditBody, &req); refusal != nil {
		return refusal
	}
	reach, refusal := s.reach()
	if refusal != nil {
		return refusal
	}
	defer reach.Done()
	edited, err := reach.Edit(r.Context(), path, req.Edits, s.session.current().UploadBytes, s.room)
	if err != nil {
		return refusalOf(err)
	}
	writeJSON(w, http.StatusOK, edited)
	return nil
}

// room is files.Room.
func (s *Server) room(ctx context.Context, size int64) (release func(), err error) {
	held, err := s.unread.take(ctx, size)
	if err != nil {
		return nil, err
	}
	return held.release, nil
}

// listRoom is what a list takes: its entries, their encoding in a buffer that doubles,
// what of either is not collected yet, and the names of directories.
const listRoom = 5*wire.MaxList + 1<<20

func (s *Server) listFiles(w http.ResponseWriter, r *http.Request, _ string) *Refusal {
	if refusal := noBody(r); refusal != nil {
		return refusal
	}
	path, listing, refusal := parseListQuery(r.URL.RawQuery)
	if refusal != nil {
		return refusal
	}
	reach, refusal := s.reach()
	if refusal != nil {
		return refusal
	}
	defer reach.Done()
	held, err := s.unread.take(r.Context(), listRoom)
	if err != nil {
		return gone(err)
	}
	defer held.release()
	list, err := reach.List(r.Context(), path, listing)
	if err != nil {
		return refusalOf(err)
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}
