package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/artifact"
	"github.com/berth-dev/berth/sandbox-agent/detached"
	"github.com/berth-dev/berth/sandbox-agent/execlog"
	"github.com/berth-dev/berth/sandbox-agent/files"
	"github.com/berth-dev/berth/sandbox-agent/shell"
	"github.com/berth-dev/berth/sandbox-agent/upload"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Shell runs commands; *shell.Shell does.
type Shell interface {
	Kind() string
	Run(ctx context.Context, c shell.Command) (shell.Result, error)
	Setenv(ctx context.Context, env []string) error
}

// Gate decides whether a request may be served at all.
type Gate interface {
	// Admit returns nil or a refusal.
	Admit(r *http.Request) *Refusal
}

// Server serves one session.
type Server struct {
	shell     Shell
	artifacts *artifact.Store
	logs      *execlog.Store  // nil: none are kept
	detached  *detached.Store // nil: no command is
	gate      Gate
	log       *slog.Logger

	session   session
	commands  commands
	calls     *calls
	activity  activity
	unread    *unread
	bodies    bodies
	processes Processes // nil: none
	uploads   Uploads   // nil: none
	stalls    upload.Clock
	files     *files.Store  // nil: none
	edits     chan struct{} // holds one for each large request to edit
	routes    []route

	smallEdits chan struct{} // and for each other one
}

// New returns a server without a session.
func New(sh Shell, artifacts *artifact.Store, gate Gate, log *slog.Logger) *Server {
	s := &Server{shell: sh, artifacts: artifacts, gate: gate, log: log, unread: newUnread(), bodies: newBodies(), calls: newCalls(time.Now), activity: activity{now: time.Now, since: time.Now()}}
	s.routes = []route{
		{path: wire.HealthPath, open: true, methods: methods{http.MethodGet: s.health}},
		{path: wire.SessionPath, unbound: true, methods: methods{http.MethodPut: s.bind}},
		{path: wire.ActivityPath, passive: true, methods: methods{http.MethodGet: s.active}},
		{path: wire.QuiescePath, passive: true, methods: methods{http.MethodPost: s.quiesce}},
		{path: wire.ExecPath, methods: methods{http.MethodPost: s.exec}},
		{path: wire.ExecPath + "/", query: true, methods: methods{http.MethodGet: s.execState, http.MethodDelete: s.cancel}},
		{path: wire.CallsPath + "/", passive: true, methods: methods{http.MethodGet: s.listCalls, http.MethodDelete: s.cancelCall}},
		{path: wire.ArtifactsPath, methods: methods{http.MethodPost: s.export}},
		{path: wire.ArtifactsPath + "/", methods: methods{http.MethodGet: s.read, http.MethodDelete: s.drop}},
	}
	return s
}

// KeepLogs keeps the whole of outputs that results can't carry. It comes before
// the first request.
func (s *Server) KeepLogs(logs *execlog.Store) { s.logs = logs }

// BindLocally binds a session with default limits, for an agent that a
// developer starts by hand.
func (s *Server) BindLocally() { s.session.bind(wire.Session{UID: "local"}) }

// Drain refuses commands from now on and waits until those under way have
// ended; when ctx ends first, they are cancelled.
func (s *Server) Drain(ctx context.Context) {
	s.commands.close()
	stop := context.AfterFunc(ctx, s.commands.endAll)
	defer stop()
	s.commands.active.Wait()
}
