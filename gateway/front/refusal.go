package front

import (
	"errors"
	"net/http"

	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/cancellation"
	"github.com/berth-dev/berth/gateway/dispatch"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// refusal is an answer of 400 or more.
type refusal struct {
	status  int
	code    string
	message string
	audit   string // the code of the audit line
}

// passedOn are an agent's codes that its caller is to see, with their status.
var passedOn = map[string]int{
	"bad_request":       http.StatusBadRequest,
	"outside_workspace": http.StatusForbidden,
	"forbidden":         http.StatusForbidden,
	"stalled":           http.StatusRequestTimeout,
	"name_taken":        http.StatusConflict,
	"too_large":         http.StatusRequestEntityTooLarge,
	"internal":          http.StatusInternalServerError,
	"no_space":          http.StatusInsufficientStorage,
}

// refusalOf is the answer to an upload or a read that failed.
func refusalOf(err error) *refusal {
	status, code := statusOf(err)
	r := &refusal{status: status, code: code, message: err.Error(), audit: audit.CodeFailed}
	switch {
	case errors.Is(err, session.ErrNotAvailable), errors.Is(err, session.ErrForbidden):
		r.audit = audit.CodeForbidden
	case errors.Is(err, session.ErrNotFound):
		r.audit = audit.CodeNotFound
	}
	return r
}

func statusOf(err error) (status int, code string) {
	var (
		refused  *client.Error
		agent    *dispatch.AgentError
		notReady *session.NotReadyError
		template *session.TemplateError
	)
	if errors.As(err, &refused) && passedOn[refused.Code] == refused.Status {
		return refused.Status, refused.Code
	}
	switch {
	case errors.Is(err, client.ErrBody) && stalled(err):
		return http.StatusRequestTimeout, "stalled"
	case errors.Is(err, client.ErrBody):
		return http.StatusBadRequest, "bad_body"
	case errors.Is(err, session.ErrNotAvailable):
		return http.StatusForbidden, "not_available"
	case errors.Is(err, session.ErrForbidden):
		return http.StatusForbidden, "forbidden"
	case errors.Is(err, session.ErrNotFound):
		return http.StatusNotFound, "not_found"
	case errors.As(err, &template):
		return http.StatusConflict, "another_template"
	case errors.As(err, &notReady):
		return http.StatusServiceUnavailable, "not_ready"
	case errors.Is(err, cancellation.ErrShutdown), errors.Is(err, client.ErrGone), errors.Is(err, client.ErrDraining):
		return http.StatusServiceUnavailable, "unavailable"
	case errors.As(err, &agent):
		return http.StatusBadGateway, "bad_gateway"
	default:
		return http.StatusServiceUnavailable, "unavailable"
	}
}
