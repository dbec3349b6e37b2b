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

// passedOn are an agent's answers that its caller is to see, with their status.
var passedOn = []struct {
	err    error
	status int
	code   string
}{
	{client.ErrOutsideWorkspace, http.StatusForbidden, "outside_workspace"},
	{client.ErrForbidden, http.StatusForbidden, "forbidden"},
	{client.ErrStalled, http.StatusRequestTimeout, "stalled"},
	{client.ErrNameTaken, http.StatusConflict, "name_taken"},
	{client.ErrTooLarge, http.StatusRequestEntityTooLarge, "too_large"},
	{client.ErrNoSpace, http.StatusInsufficientStorage, "no_space"},
}

// uploadRefusal is the answer to an upload that failed.
func uploadRefusal(err error) *refusal {
	status, code := uploadStatus(err)
	r := &refusal{status: status, code: code, message: err.Error(), audit: audit.CodeFailed}
	switch {
	case errors.Is(err, session.ErrNotAvailable), errors.Is(err, session.ErrForbidden):
		r.audit = audit.CodeForbidden
	case errors.Is(err, session.ErrNotFound):
		r.audit = audit.CodeNotFound
	}
	return r
}

func uploadStatus(err error) (status int, code string) {
	var (
		refused  *client.Error
		agent    *dispatch.AgentError
		notReady *session.NotReadyError
	)
	for _, p := range passedOn {
		if errors.As(err, &refused) && errors.Is(err, p.err) && refused.Status == p.status {
			return p.status, p.code
		}
	}
	switch {
	case errors.As(err, &refused) && refused.Code == "bad_request" && refused.Status == http.StatusBadRequest:
		return http.StatusBadRequest, "bad_request"
	case errors.As(err, &refused) && refused.Code == "internal" && refused.Status == http.StatusInternalServerError:
		return http.StatusInternalServerError, "internal"
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
