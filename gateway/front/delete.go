package front

import (
	"net/http"

	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/authz"
	"github.com/berth-dev/berth/gateway/session"
)

const invalidSessionID = "a session ID is 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit"

// deleteSession ends a session: 204, also when there is none or it is another's.
func (f *Front) deleteSession(w http.ResponseWriter, r *http.Request) {
	r, call, end := f.record(r, "delete_session")
	defer end()
	id := r.PathValue("id")
	if !session.ValidID(id) {
		call.Code = audit.CodeInvalid
		refuse(w, http.StatusBadRequest, "invalid_session_id", invalidSessionID)
		return
	}
	call.Session = id
	caller, ok := authn.FromContext(r.Context())
	if !ok {
		call.Code = audit.CodeForbidden
		refuse(w, http.StatusUnauthorized, "unauthenticated", authn.ErrUnauthenticated.Error())
		return
	}
	choice, err := session.ChoiceFrom(r.Header)
	if err != nil {
		call.Code = audit.CodeInvalid
		refuse(w, http.StatusBadRequest, "invalid_header", err.Error())
		return
	}
	call.Namespace = f.Namespaces.For(caller, choice)
	allowed, err := f.Authorizer.Allowed(r.Context(), caller, authz.Delete, call.Namespace, id)
	if err == nil && !allowed {
		call.Code = audit.CodeForbidden
		refuse(w, http.StatusForbidden, "forbidden", session.ErrForbidden.Error())
		return
	}
	if err == nil {
		err = f.Sessions.End(r.Context(), session.Key{Namespace: call.Namespace, Name: id}, caller)
	}
	if err != nil {
		call.Code = audit.CodeFailed
		f.Log.ErrorContext(r.Context(), "Session could not be deleted", "namespace", call.Namespace, "session", id, "error", err)
		refuse(w, http.StatusInternalServerError, "internal", "the session could not be deleted; try again")
		return
	}
	call.Code = audit.CodeOK
	w.WriteHeader(http.StatusNoContent)
}
