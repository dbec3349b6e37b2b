package httpapi

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/background"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Processes are the background processes; *background.Registry is.
type Processes interface {
	// Activity is how many run, and when the last of those that ended did. It
	// may be asked under a lock: it waits for nothing.
	Activity() (running int, ended time.Time)
	Start(ctx context.Context, req wire.ProcessRequest) (p wire.Process, created bool, err error)
	List(ctx context.Context) ([]wire.Process, error)
	Get(id string) (wire.Process, error)
	Output(ctx context.Context, id string, q background.Query) (wire.ProcessOutput, error)
	Input(ctx context.Context, id string, in wire.ProcessInput) (written int, err error)
	Signal(ctx context.Context, id string, sig unix.Signal) error
	Cancel(ctx context.Context, id string) error
}

// KeepProcesses serves background processes. It comes before the first request.
func (s *Server) KeepProcesses(p Processes) {
	s.processes = p
	one := wire.ProcessesPath + "/"
	s.routes = append(s.routes,
		route{path: wire.ProcessesPath, methods: methods{http.MethodPost: s.startProcess, http.MethodGet: s.listProcesses}},
		route{path: one, methods: methods{http.MethodGet: s.getProcess, http.MethodDelete: s.cancelProcess}},
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
	held, refusal := readInto(w, r, s.bodies.commands, wire.MaxExecBody, &req)
	if refusal != nil {
		return refusal
	}
	defer held.release()
	if refusal := checkCommand(req.Command, req.ID, req.Cwd, req.Env); refusal != nil {
		return refusal
	}
	if refusal := checkTerminal(req.Terminal); refusal != nil {
		return refusal
	}
	p, created, err := s.processes.Start(r.Context(), req)
	if err != nil {
		return refusalOf(err)
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	writeJSON(w, status, p)
	return nil
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
		return refusalOf(err)
	}
	var text int64
	for _, p := range all {
		text += int64(len(p.Command) + len(p.Notice))
	}
	room, err := s.unread.take(r.Context(), costOf(text))
	if err != nil {
		return refusalOf(err)
	}
	defer room.release()
	writeJSON(w, http.StatusOK, wire.ProcessList{Processes: all})
	return nil
}

func (s *Server) getProcess(w http.ResponseWriter, r *http.Request, id string) *Refusal {
	if refusal := noBody(r); refusal != nil {
		return refusal
	}
	p, err := s.processes.Get(id)
	if err != nil {
		return refusalOf(err)
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
	var room *share
	defer func() { room.release() }()
	query.Room = func(ctx context.Context) (err error) {
		room, err = s.unread.take(ctx, costOf(int64(query.Limit)))
		return err
	}
	o, err := s.processes.Output(r.Context(), id, query)
	if err != nil {
		return refusalOf(err)
	}
	writeJSON(w, http.StatusOK, o)
	return nil
}

func (s *Server) processInput(w http.ResponseWriter, r *http.Request, id string) *Refusal {
	var in wire.ProcessInput
	held, refusal := readInto(w, r, s.bodies.input, wire.MaxExecBody, &in)
	if refusal != nil {
		return refusal
	}
	defer held.release()
	if in.Data == "" && !in.EOF && in.Terminal == nil {
		return badRequest("want data, eof or terminal")
	}
	if refusal := checkTerminal(in.Terminal); refusal != nil {
		return refusal
	}
	written, err := s.processes.Input(r.Context(), id, in)
	if err != nil {
		return refusalOf(err)
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
		return refusalOf(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) cancelProcess(w http.ResponseWriter, r *http.Request, id string) *Refusal {
	if refusal := noBody(r); refusal != nil {
		return refusal
	}
	if err := s.processes.Cancel(r.Context(), id); err != nil {
		return refusalOf(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
