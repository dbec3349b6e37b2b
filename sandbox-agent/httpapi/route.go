package httpapi

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

type methods map[string]func(w http.ResponseWriter, r *http.Request, id string) *Refusal

// route is one path. A path that ends in a slash is followed by one id, and that
// by suffix.
type route struct {
	path    string
	suffix  string
	query   bool // it takes one
	open    bool // served without a token
	unbound bool // served before a session is bound
	passive bool // no activity, and served always
	methods methods
}

func (rt route) match(path string) (id string, ok bool) {
	if !strings.HasSuffix(rt.path, "/") {
		return "", path == rt.path
	}
	id, ok = strings.CutPrefix(path, rt.path)
	if ok {
		id, ok = strings.CutSuffix(id, rt.suffix)
	}
	return id, ok && id != "" && !strings.Contains(id, "/")
}

// ServeHTTP checks in this order: token, route, method, session, request. A
// stranger learns nothing of routes.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if refusal := s.serve(w, r); refusal != nil {
		refusal.write(w)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) *Refusal {
	found, id := s.find(r.URL.Path)
	if found == nil || !found.open {
		if refusal := s.gate.Admit(r); refusal != nil {
			return refusal
		}
	}
	if found == nil {
		return refuse(http.StatusNotFound, wire.CodeNotFound, wire.NoRoute+"; see docs/agent.md")
	}
	handle, ok := found.methods[r.Method]
	if !ok {
		allow := slices.Sorted(maps.Keys(found.methods))
		w.Header().Set("Allow", strings.Join(allow, ", "))
		return refuse(http.StatusMethodNotAllowed, wire.CodeMethodNotAllowed, "this route takes "+strings.Join(allow, ", "))
	}
	if r.URL.ForceQuery || r.URL.RawQuery != "" && !found.query {
		return refuse(http.StatusBadRequest, wire.CodeBadRequest, "this route takes no query")
	}
	counted, refusal := s.admit(found)
	if refusal != nil {
		return refusal
	}
	if counted {
		defer s.activity.end()
	}
	r, end, refusal := s.callOf(r)
	if refusal != nil {
		return refusal
	}
	defer end()
	return unlessCancelled(r.Context(), handle(w, r, id))
}

func (s *Server) find(path string) (*route, string) {
	for i := range s.routes {
		if id, ok := s.routes[i].match(path); ok {
			return &s.routes[i], id
		}
	}
	return nil, ""
}
