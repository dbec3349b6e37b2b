package httpapi

import (
	"math"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// session is what the agent was bound with.
type session struct {
	mu     sync.RWMutex
	uid    string
	limits wire.Limits
	// backgroundIsActivity: a background process that runs counts.
	backgroundIsActivity bool
	roots                []string // beside the workspace; not written to
}

func (s *session) isBound() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.uid != ""
}

func (s *session) id() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.uid
}

func (s *session) current() wire.Limits {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.limits
}

func (s *session) fileRoots() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.roots
}

func (s *session) backgroundCounts() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.backgroundIsActivity
}

// fits tells whether the agent is free for, or bound to, uid.
func (s *session) fits(uid string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.uid == "" || s.uid == uid
}

// bind returns false when another session is bound.
func (s *session) bind(to wire.Session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uid != "" && s.uid != to.UID {
		return false
	}
	s.uid, s.limits = to.UID, to.Limits.WithDefaults()
	s.backgroundIsActivity, s.roots = to.BackgroundIsActivity, to.FileRoots
	return true
}

func (s *Server) bind(w http.ResponseWriter, r *http.Request, _ string) *Refusal {
	var to wire.Session
	if refusal := readJSON(w, r, wire.MaxSessionBody, &to); refusal != nil {
		return refusal
	}
	if refusal := checkSession(to); refusal != nil {
		return refusal
	}
	other := refuse(http.StatusConflict, wire.CodeSessionBound, "this agent serves another session")
	if !s.session.fits(to.UID) {
		return other
	}
	if env := environ(to.Env); len(env) > 0 && !s.session.isBound() {
		// Before the session is bound, so that no command misses it.
		if err := s.shell.Setenv(r.Context(), env); err != nil {
			return refuse(http.StatusInternalServerError, wire.CodeInternal, "the shell could not be started: "+err.Error())
		}
	}
	if !s.session.isBound() {
		s.activity.touch() // a session is not idle for longer than it exists
	}
	if !s.session.bind(to) {
		return other
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// maxUID is longer than any UID that Kubernetes gives.
const maxUID = 128

func checkSession(to wire.Session) *Refusal {
	if to.UID == "" || len(to.UID) > maxUID {
		return badRequest("uid: want 1 to 128 characters")
	}
	if refusal := checkEnv(to.Env); refusal != nil {
		return refusal
	}
	if refusal := checkRoots(to.FileRoots); refusal != nil {
		return refusal
	}
	l := to.Limits
	switch {
	case l.CommandTimeoutDefault < 0 || l.CommandTimeoutMax < 0 || l.OutputBytes < 0 || l.ArtifactBytes < 0 || l.ArtifactTotalBytes < 0 || l.LogBytes < 0 || l.UploadBytes < 0:
		return badRequest("limits: a limit is negative")
	case l.CommandTimeoutDefault > math.MaxInt32 || l.CommandTimeoutMax > math.MaxInt32:
		return badRequest("limits: a time-out is longer than 68 years")
	case l.OutputBytes > wire.MaxOutputBytes:
		return badRequest("limits.output_bytes: want at most 4 MiB")
	}
	if l = l.WithDefaults(); l.CommandTimeoutDefault > l.CommandTimeoutMax {
		return badRequest("limits: command_timeout_default is more than command_timeout_max")
	}
	return nil
}

func checkRoots(roots []string) *Refusal {
	if len(roots) > wire.MaxFileRoots {
		return badRequest("file_roots: more than " + strconv.Itoa(wire.MaxFileRoots))
	}
	for _, root := range roots {
		if !filepath.IsAbs(root) || filepath.Clean(root) != root || len(root) > wire.MaxPath || strings.ContainsRune(root, 0) {
			return badRequest("file_roots: want absolute, cleaned paths of at most " + strconv.Itoa(wire.MaxPath) + " bytes")
		}
	}
	return nil
}

func checkEnv(env []wire.EnvVar) *Refusal {
	for _, v := range env {
		switch {
		case !wire.ValidEnvName(v.Name):
			return badRequest("env: a name is not [A-Za-z_][A-Za-z0-9_]*")
		case strings.HasPrefix(v.Name, wire.EnvPrefix):
			return badRequest("env: " + v.Name + ": names that begin with " + wire.EnvPrefix + " are the agent's")
		case strings.ContainsRune(v.Value, 0):
			return badRequest("env: " + v.Name + ": the value holds a NUL")
		}
	}
	return nil
}

func environ(env []wire.EnvVar) []string {
	var out []string
	for _, v := range env {
		out = append(out, v.Name+"="+v.Value)
	}
	return out
}
