package httpapi

import (
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// activity knows which calls are under way and since when none was. One lock
// serves admission and quiesce, so that no call is admitted once quiesced.
type activity struct {
	now func() time.Time // its monotonic reading counts: clocks may be set

	mu       sync.Mutex
	calls    int       // under way, that count
	since    time.Time // when the last of them ended, or the session began
	quiesced bool
}

// begin admits a call, which counts as activity until end if counts. It returns
// false once quiesced.
func (a *activity) begin(counts bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.quiesced {
		return false
	}
	if counts {
		a.calls++
	}
	return true
}

// extend counts one that is under way once more: what it leaves behind when it
// ends, until end.
func (a *activity) extend() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
}

func (a *activity) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls--
	a.since = a.now()
}

// touch makes the time before now not count as idle.
func (a *activity) touch() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.since = a.now()
}

// admit lets a call to rt in, or says why not. A call that was counted ends with
// activity.end.
func (s *Server) admit(rt *route) (counted bool, refusal *Refusal) {
	if rt.open || rt.passive {
		return false, nil
	}
	bound := s.session.isBound()
	counted = bound && !rt.unbound
	if !s.activity.begin(counted) {
		return false, refuse(http.StatusGone, wire.CodeQuiesced, "the session was quiesced: it takes no more calls")
	}
	if !bound && !rt.unbound {
		return false, refuse(http.StatusConflict, wire.CodeSessionRequired, "no session is bound: PUT "+wire.SessionPath+" first")
	}
	return counted, nil
}

// look returns what is under way, and whether that is activity. The caller
// holds activity.mu.
func (s *Server) look() (v wire.Activity, busy bool) {
	a := &s.activity
	commands := s.commands.count() // not more than calls, which a command enters first and leaves last
	v = wire.Activity{
		Running:  min(commands, 1), // the shell runs them one at a time
		Queued:   max(commands-1, 0),
		Other:    a.calls - commands,
		Quiesced: a.quiesced,
	}
	since, busy := a.since, a.calls > 0
	if s.processes != nil {
		running, ended := s.processes.Activity()
		v.Processes = running
		if s.session.backgroundCounts() {
			busy = busy || running > 0
			if ended.After(since) {
				since = ended
			}
		}
	}
	if !busy {
		v.IdleMS = max(0, a.now().Sub(since).Milliseconds())
	}
	return v, busy
}

func (s *Server) active(w http.ResponseWriter, r *http.Request, _ string) *Refusal {
	if refusal := noBody(r); refusal != nil {
		return refusal
	}
	s.activity.mu.Lock()
	v, _ := s.look()
	s.activity.mu.Unlock()
	writeJSON(w, http.StatusOK, v)
	return nil
}

// maxIdleMS is what a time.Duration holds.
const maxIdleMS = math.MaxInt64 / int64(time.Millisecond)

func (s *Server) quiesce(w http.ResponseWriter, r *http.Request, _ string) *Refusal {
	var req wire.Quiesce
	if refusal := readJSON(w, r, wire.MaxSmallBody, &req); refusal != nil {
		return refusal
	}
	if req.IdleMS < 0 || req.IdleMS > maxIdleMS {
		return badRequest("idle_ms: want 0 to 292 years")
	}
	writeJSON(w, http.StatusOK, s.quiesceIf(req.IdleMS))
	return nil
}

// quiesceIf takes no more calls from now on if nothing was under way for so
// long. Once quiesced, it stays so.
func (s *Server) quiesceIf(idleMS int64) wire.Activity {
	s.activity.mu.Lock()
	defer s.activity.mu.Unlock()
	v, busy := s.look()
	if !busy && v.IdleMS >= idleMS {
		s.activity.quiesced, v.Quiesced = true, true
	}
	return v
}
