package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/background"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Processes are the background processes; *background.Registry is.
type Processes interface {
	Background
	Start(ctx context.Context, req wire.ProcessRequest) (p wire.Process, created bool, err error)
	List(ctx context.Context) ([]wire.Process, error)
	Get(id string) (wire.Process, error)
	Output(ctx context.Context, id string, q background.Query) (wire.ProcessOutput, error)
	Input(ctx context.Context, id string, in wire.ProcessInput) (written int, err error)
	Signal(ctx context.Context, id string, sig unix.Signal) error
}

// KeepProcesses serves background processes. It comes before the first request.
func (s *Server) KeepProcesses(p Processes) {
	s.processes, s.background = p, p
	one := wire.ProcessesPath + "/"
	s.routes = append(s.routes,
		route{path: wire.ProcessesPath, methods: methods{http.MethodPost: s.startProcess, http.MethodGet: s.listProcesses}},
		route{path: one, methods: methods{http.MethodGet: s.getProcess}},
		route{path: one, suffix: wire.ProcessOutputPath, query: true, methods: methods{http.MethodGet: s.processOutput}},
		route{path: one, suffix: wire.ProcessInputPath, methods: methods{http.MethodPost: s.processInput}},
		route{path: one, suffix: wire.ProcessSignalPath, methods: methods{http.MethodPost: s.processSignal}},
	)
}

func (s *Server) startProcess(w http.ResponseWriter, r *http.Request, _ string) *Refusal {
	if refusal := s.ready(); refusal != nil {
		return refusal
	}
	var req wire.ProcessRequest
	if refusal := readJSON(w, r, wire.MaxExecBody, &req); refusal != nil {
		return refusal
	}
	if refusal := checkProcess(req); refusal != nil {
		return refusal
	}
	p, created, err := s.processes.Start(r.Context(), req)
	if err != nil {
		return processRefusal(err)
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	writeJSON(w, status, p)
	return nil
}

func checkProcess(req wire.ProcessRequest) *Refusal {
	switch {
	case req.Command == "":
		return badRequest("command: must not be empty")
	case strings.ContainsRune(req.Command, 0):
		return badRequest("command: holds a NUL, which no shell can read")
	case strings.ContainsRune(req.Cwd, 0) || len(req.Cwd) > wire.MaxPath:
		return badRequest("cwd: holds a NUL or is too long")
	case req.ID != "" && !wire.ValidExecID(req.ID):
		return badRequest("id: want 1 to 128 of A-Z a-z 0-9 . _ -")
	}
	if refusal := checkTerminal(req.Terminal); refusal != nil {
		return refusal
	}
	return checkEnv(req.Env)
}

func checkTerminal(t *wire.Terminal) *Refusal {
	if t != nil && (t.Rows < 0 || t.Rows > wire.MaxTerminal || t.Cols < 0 || t.Cols > wire.MaxTerminal) {
		return badRequest("terminal: want rows and cols from 0 to 4096")
	}
	return nil
}

func (s *Server) listProcesses(w http.ResponseWriter, r *http.Request, _ string) *Refusal {
	if refusal := noBody(r); refusal != nil {
		return refusal
	}
	all, err := s.processes.List(r.Context())
	if err != nil {
		return processRefusal(err)
	}
	writeJSON(w, http.StatusOK, wire.ProcessList{Processes: all})
	return nil
}

func (s *Server) getProcess(w http.ResponseWriter, r *http.Request, id string) *Refusal {
	if refusal := noBody(r); refusal != nil {
		return refusal
	}
	p, err := s.processes.Get(id)
	if err != nil {
		return processRefusal(err)
	}
	writeJSON(w, http.StatusOK, p)
	return nil
}

func (s *Server) processOutput(w http.ResponseWriter, r *http.Request, id string) *Refusal {
	if refusal := noBody(r); refusal != nil {
		return refusal
	}
	query, ok := parseOutputQuery(r.URL.RawQuery)
	if !ok {
		return badRequest("query: want offset (a number), limit (a number from 0 up) and wait (seconds from 0 up), each at most once")
	}
	o, err := s.processes.Output(r.Context(), id, query)
	if err != nil {
		return processRefusal(err)
	}
	writeJSON(w, http.StatusOK, o)
	return nil
}

func (s *Server) processInput(w http.ResponseWriter, r *http.Request, id string) *Refusal {
	var in wire.ProcessInput
	if refusal := readJSON(w, r, wire.MaxExecBody, &in); refusal != nil {
		return refusal
	}
	if in.Data == "" && !in.EOF && in.Terminal == nil {
		return badRequest("want data, eof or terminal")
	}
	if refusal := checkTerminal(in.Terminal); refusal != nil {
		return refusal
	}
	written, err := s.processes.Input(r.Context(), id, in)
	if err != nil {
		return processRefusal(err)
	}
	writeJSON(w, http.StatusOK, wire.ProcessInputResult{Written: written})
	return nil
}

func (s *Server) processSignal(w http.ResponseWriter, r *http.Request, id string) *Refusal {
	var req wire.ProcessSignal
	if refusal := readJSON(w, r, wire.MaxSmallBody, &req); refusal != nil {
		return refusal
	}
	sig, ok := background.ParseSignal(req.Signal)
	if !ok {
		return badRequest("signal: want a name as TERM or SIGTERM, or a number from 1 to 64")
	}
	if err := s.processes.Signal(r.Context(), id, sig); err != nil {
		return processRefusal(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func processRefusal(err error) *Refusal {
	for _, known := range []struct {
		err    error
		status int
		code   string
	}{
		{background.ErrTooMany, http.StatusTooManyRequests, wire.CodeTooManyProcesses},
		{background.ErrIDInUse, http.StatusBadRequest, wire.CodeIDInUse},
		{background.ErrNotFound, http.StatusNotFound, wire.CodeNotFound},
		{background.ErrNotRunning, http.StatusUnprocessableEntity, wire.CodeNotRunning},
		{background.ErrInputClosed, http.StatusUnprocessableEntity, wire.CodeInputClosed},
		{background.ErrNoTerminal, http.StatusBadRequest, wire.CodeBadRequest},
		{background.ErrJob, http.StatusUnprocessableEntity, wire.CodeIsJob},
		{background.ErrClosed, http.StatusServiceUnavailable, wire.CodeDraining},
	} {
		if errors.Is(err, known.err) {
			return refuse(known.status, known.code, known.err.Error())
		}
	}
	return shellRefusal(err)
}
