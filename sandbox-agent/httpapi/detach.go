package httpapi

import (
	"bytes"
	"context"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/detached"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// KeepDetached lets commands be detached. It comes before the first request.
func (s *Server) KeepDetached(d *detached.Store) { s.detached = d }

func (s *Server) checkDetach(r *http.Request, req wire.ExecRequest) *Refusal {
	switch {
	case s.detached == nil:
		return badRequest("detach_after: this agent detaches no commands")
	case math.IsInf(req.DetachAfter, 0) || math.IsNaN(req.DetachAfter) || req.DetachAfter < 0:
		return badRequest("detach_after: want seconds from 0 up")
	case req.ID == "":
		return badRequest("detach_after: needs an id, by which the command is asked for")
	case wantsFrames(r):
		return badRequest("detach_after: not with an answer in frames")
	case s.detached.Has(req.ID):
		return refuse(http.StatusBadRequest, wire.CodeIDInUse, detached.ErrIDInUse.Error())
	}
	return nil
}

// detachable runs a command that is its call's until it is detached: before, it
// ends with its call, afterwards by itself alone. It gives back what body holds.
func (s *Server) detachable(w http.ResponseWriter, r *http.Request, req wire.ExecRequest, body *share) *Refusal {
	if refusal := s.checkDetach(r, req); refusal != nil {
		body.release()
		return refusal
	}
	sent := time.Now()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	detach := context.AfterFunc(r.Context(), func() { cancel(context.Cause(r.Context())) })
	ended := make(chan outcome, 1)
	go func() {
		defer cancel(nil)
		defer body.release()
		ended <- s.outcome(ctx, req)
	}()
	timer := time.NewTimer(time.Duration(min(req.DetachAfter, math.MaxInt32) * float64(time.Second)))
	defer timer.Stop()
	select {
	case o := <-ended:
		return o.answer(w)
	case <-timer.C:
	}
	if !detach() { // whoever sent it is gone, or has cancelled it
		o := <-ended
		return o.answer(w)
	}
	command, err := s.detached.Add(req.ID, sent)
	if err != nil { // a command of the same id was faster
		cancel(err)
		o := <-ended
		o.room.release()
		return refuse(http.StatusBadRequest, wire.CodeIDInUse, err.Error())
	}
	s.activity.extend()
	go func() {
		defer s.activity.end()
		o := <-ended
		s.keep(command, o)
	}()
	writeJSON(w, http.StatusAccepted, wire.ExecState{ID: req.ID, Running: true, Sent: sent.UTC()})
	return nil
}

// keep keeps the outcome for whoever will ask for it.
func (s *Server) keep(c *detached.Command, o outcome) {
	defer o.room.release()
	if o.refusal != nil {
		s.detached.Refuse(c, wire.ErrorDetail{Code: o.refusal.Code, Message: o.refusal.Message})
		return
	}
	s.detached.Keep(c, o.result, o.result.ExitCode == wire.ExitKilled && !o.result.TimedOut)
}

// execState answers how a detached command is, with its result once there is one.
func (s *Server) execState(w http.ResponseWriter, r *http.Request, id string) *Refusal {
	if refusal := noBody(r); refusal != nil {
		return refusal
	}
	wait, ok := parseExecQuery(r.URL.RawQuery)
	if !ok {
		return badRequest("query: want wait, in seconds from 0 up, at most once")
	}
	if s.detached == nil {
		return refusalOf(detached.ErrNotFound)
	}
	state, err := s.detached.Wait(r.Context(), id, wait)
	if err != nil {
		return refusalOf(err)
	}
	if state.Size() == 0 {
		writeJSON(w, http.StatusOK, state.ExecState)
		return nil
	}
	writeWithResult(w, state)
	return nil
}

// writeWithResult copies a result into the state that it belongs to, without
// having it in memory.
func writeWithResult(w http.ResponseWriter, state detached.State) {
	head := bytes.TrimSuffix(wire.Encode(state.ExecState), []byte("}"))
	head = append(head, `,"result":`...)
	const tail = "}\n"
	headJSON(w, http.StatusOK, int64(len(head))+state.Size()+int64(len(tail)))
	// Whoever reads a part sees that it is one: the length was announced.
	_, _ = io.Copy(w, io.MultiReader(bytes.NewReader(head), state.Result(), strings.NewReader(tail)))
}

// parseExecQuery reads the query of GET /v1/exec/{id}.
func parseExecQuery(raw string) (wait time.Duration, ok bool) {
	if raw == "" {
		return 0, true
	}
	value, ok := strings.CutPrefix(raw, wire.ExecWait+"=")
	if !ok || !waitForm.MatchString(value) {
		return 0, false
	}
	wait, err := parseWait(value, wire.MaxExecWait)
	return wait, err == nil
}

// cancelDetached cancels a command that was detached. One that has ended is left
// as it is. It returns whether there is one.
func (s *Server) cancelDetached(id string) bool {
	return s.detached != nil && s.detached.Cancelling(id)
}
