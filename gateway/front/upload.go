package front

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/authz"
	"github.com/berth-dev/berth/gateway/cancellation"
	"github.com/berth-dev/berth/gateway/dispatch"
	"github.com/berth-dev/berth/gateway/session"
)

// maxFileName bounds what a caller calls a file, in bytes: an agent's request
// line has an end.
const maxFileName = 4096

// isUpload tells whether a request's body is a file.
func isUpload(r *http.Request) bool { return r.Method == http.MethodPost && isUploadPath(r.URL.Path) }

func isUploadPath(path string) bool {
	rest, ok := strings.CutPrefix(path, "/sessions/")
	id, ok2 := strings.CutSuffix(rest, "/files")
	return ok && ok2 && !strings.Contains(id, "/")
}

// uploaded is the answer to an upload.
type uploaded struct {
	Path   string `json:"path"`
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	Notice string `json:"notice,omitempty"`
}

// upload streams a file into a session, which is made if there is none: 201. Its
// body is not read before the session's agent has agreed to take it.
func (f *Front) upload(w http.ResponseWriter, r *http.Request) {
	r, call, end := f.record(r, "upload_file")
	body := &fileBody{body: r.Body, extend: func() { f.extendBody(w) }, release: func() { bodyRead(w) }}
	defer body.stop()
	defer func() {
		call.InBytes = body.read()
		end()
	}()
	if r.ContentLength == 0 {
		bodyRead(w) // there is none: only a disconnect is still to be noticed
	}
	req, name, bad := f.uploadRequest(r, call)
	if bad != nil {
		refuseUpload(w, r, body, bad)
		return
	}
	leave, ok := f.Places.Enter(r.Context())
	if !ok {
		call.Code = audit.CodeFailed
		f.Metrics.Refusal("busy")
		refuseUpload(w, r, body, &refusal{status: http.StatusServiceUnavailable, code: "busy", message: "the gateway serves as many calls as it can: nothing was sent on; try again"})
		return
	}
	defer leave()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(f.Options.Ending, func() { cancel(cancellation.ErrShutdown) })()
	file, notice, err := f.Uploads.Upload(ctx, req, dispatch.Upload{Name: name, Size: r.ContentLength, Body: body})
	if err != nil {
		refusal := refusalOf(err)
		call.Code = refusal.audit
		if r.Context().Err() != nil {
			call.Code = audit.CodeCancelled
		}
		refuseUpload(w, r, body, refusal)
		return
	}
	call.Code = audit.CodeOK
	answer, _ := json.Marshal(uploaded{file.Path, file.Name, file.Size, notice}) // text and a number: can't fail
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusCreated)
	w.Write(append(answer, '\n')) // a client that has gone needs no answer
}

// uploadRequest says where a file goes and what it is called, checking that its
// caller may send it. Nothing is made before.
func (f *Front) uploadRequest(r *http.Request, call *audit.Call) (req session.Request, name string, _ *refusal) {
	call.Code = audit.CodeInvalid
	id := r.PathValue("id")
	if !session.ValidID(id) {
		return req, "", &refusal{status: http.StatusBadRequest, code: "invalid_session_id", message: invalidSessionID}
	}
	call.Session = id
	name, bad := uploadParameters(r)
	if bad != nil {
		return req, "", bad
	}
	caller, ok := authn.FromContext(r.Context())
	if !ok {
		call.Code = audit.CodeForbidden
		return req, "", &refusal{status: http.StatusUnauthorized, code: "unauthenticated", message: authn.ErrUnauthenticated.Error()}
	}
	choice, err := session.ChoiceFrom(r.Header)
	if err != nil {
		return req, "", &refusal{status: http.StatusBadRequest, code: "invalid_header", message: err.Error()}
	}
	call.Namespace = f.Namespaces.For(caller, choice)
	why := session.ErrForbidden
	allowed, err := f.Authorizer.Allowed(r.Context(), caller, authz.Create, call.Namespace, id)
	if err == nil && allowed {
		why = session.ErrTemplateForbidden
		allowed, err = f.Authorizer.MayUse(r.Context(), caller, call.Namespace, choice.Template)
	}
	if err != nil {
		call.Code = audit.CodeFailed
		f.Log.ErrorContext(r.Context(), "Caller could not be authorized", "namespace", call.Namespace, "session", id, "error", err)
		return req, "", &refusal{status: http.StatusServiceUnavailable, code: "authorization_unavailable", message: authz.ErrUnavailable.Error()}
	}
	if !allowed {
		call.Code = audit.CodeForbidden
		return req, "", &refusal{status: http.StatusForbidden, code: "forbidden", message: why.Error()}
	}
	return session.Request{Key: session.Key{Namespace: call.Namespace, Name: id}, Caller: caller, Template: choice.Template, Mode: session.FindOrCreate}, name, nil
}

// uploadParameters returns the name, which is the only parameter. Of headers,
// those are refused that say that the body isn't the file's bytes.
func uploadParameters(r *http.Request) (name string, _ *refusal) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	name = values.Get("name")
	if err != nil || len(values) != 1 || len(values["name"]) != 1 || name == "" || len(name) > maxFileName {
		return "", &refusal{status: http.StatusBadRequest, code: "bad_request", message: "want the query ?name=NAME, of 1 to 4096 bytes, and nothing else"}
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	encoding := r.Header.Get("Content-Encoding")
	if err == nil && strings.HasPrefix(kind, "multipart/") || encoding != "" && !strings.EqualFold(encoding, "identity") {
		return "", &refusal{status: http.StatusUnsupportedMediaType, code: "unsupported_media", message: "the body must be the file's bytes: no form, no encoding"}
	}
	return name, nil
}

// lingerTime is for a client that still sends to see that it was refused.
const lingerTime = time.Second

// refuseUpload answers a client that may still send: if the connection were
// closed on that, the answer could be lost.
func refuseUpload(w http.ResponseWriter, r *http.Request, body *fileBody, refused *refusal) {
	unread := body.stop()
	isStream := r.ProtoMajor > 1
	if !isStream {
		w.Header().Set("Connection", "close")
	}
	if refused.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	refuse(w, refused.status, refused.code, refused.message)
	if isStream {
		return // it ends by itself, after the answer; a second reader of its body would wait for ever
	}
	// Each of these fails only when the connection is gone or the body has ended.
	control := http.NewResponseController(w)
	_ = control.Flush()
	if unread && r.Header.Get("Expect") != "" {
		return // it was not told to send
	}
	_ = control.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.Copy(io.Discard, r.Body)
}
