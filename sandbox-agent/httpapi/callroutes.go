package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// callOf makes a request part of the call that it names. The caller calls end when
// it has been answered.
func (s *Server) callOf(r *http.Request) (_ *http.Request, end func(), refusal *Refusal) {
	values := r.Header.Values(wire.CallHeader)
	if len(values) == 0 {
		return r, func() {}, nil
	}
	key, id, ok := wire.ParseCall(values[0])
	if !ok || len(values) > 1 {
		return nil, nil, badRequest(wire.CallHeader + ": want one key and id of 64 hexadecimal digits, with a dot between")
	}
	ctx, end, ok := s.calls.begin(r.Context(), key, id)
	if !ok {
		return nil, nil, cancelled()
	}
	return r.WithContext(ctx), end, nil
}

// unlessCancelled is what a request is refused with: that its call was cancelled,
// if it was, whatever came of that.
func unlessCancelled(ctx context.Context, refusal *Refusal) *Refusal {
	if refusal != nil && errors.Is(context.Cause(ctx), errCancelled) {
		return cancelled()
	}
	return refusal
}

func cancelled() *Refusal {
	return refuse(http.StatusConflict, wire.CodeCancelled, errCancelled.Error())
}

// checkCalls checks a request about the calls of a key.
func checkCalls(r *http.Request, key string) *Refusal {
	if !wire.ValidCallKey(key) {
		return badRequest("key: want 64 hexadecimal digits")
	}
	return noBody(r)
}

func (s *Server) listCalls(w http.ResponseWriter, r *http.Request, key string) *Refusal {
	if refusal := checkCalls(r, key); refusal != nil {
		return refusal
	}
	ids := s.calls.ids(key)
	if ids == nil {
		ids = []string{}
	}
	writeJSON(w, http.StatusOK, wire.Calls{IDs: ids})
	return nil
}

func (s *Server) cancelCall(w http.ResponseWriter, r *http.Request, key string) *Refusal {
	if refusal := checkCalls(r, key); refusal != nil {
		return refusal
	}
	switch s.calls.cancel(key) {
	case 0:
		return refuse(http.StatusNotFound, wire.CodeNotFound, "no call of this key is under way")
	case 1:
		w.WriteHeader(http.StatusNoContent)
		return nil
	default:
		return refuse(http.StatusConflict, wire.CodeManyCalls, "calls of several clients have this key: none was ended")
	}
}
