package httpapi

import (
	"net/http"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// health answers at once: nothing here waits for a command or a lock that one
// holds.
func (s *Server) health(w http.ResponseWriter, _ *http.Request, _ string) *Refusal {
	h := wire.Health{Status: wire.StatusOK, Shell: s.shell.Kind(), Bound: s.session.isBound()}
	status := http.StatusServiceUnavailable
	switch {
	case h.Shell == wire.ShellNone:
		h.Status = wire.StatusNoShell
	case s.commands.isClosed():
		h.Status = wire.StatusDraining
	default:
		status = http.StatusOK
	}
	writeJSON(w, status, h)
	return nil
}
