package httpapi

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/berth-dev/berth/sandbox-agent/archive"
	"github.com/berth-dev/berth/sandbox-agent/artifact"
	"github.com/berth-dev/berth/sandbox-agent/background"
	"github.com/berth-dev/berth/sandbox-agent/detached"
	"github.com/berth-dev/berth/sandbox-agent/files"
	"github.com/berth-dev/berth/sandbox-agent/shell"
	"github.com/berth-dev/berth/sandbox-agent/upload"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Refusal is an error answer.
type Refusal struct {
	Status  int
	Code    string // one of wire.Code*
	Message string
	// RetryAfter in seconds, 0 for none.
	RetryAfter int
}

func refuse(status int, code, message string) *Refusal {
	return &Refusal{Status: status, Code: code, Message: message}
}

func badRequest(message string) *Refusal {
	return refuse(http.StatusBadRequest, wire.CodeBadRequest, message)
}

func draining() *Refusal {
	return refuse(http.StatusServiceUnavailable, wire.CodeDraining, "the agent is shutting down")
}

func (f *Refusal) write(w http.ResponseWriter) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	writeJSON(w, f.Status, wire.ErrorBody{Error: wire.ErrorDetail{Code: f.Code, Message: f.Message}})
}

// retryAfter is what a caller is told whose command found the queue full.
const retryAfter = 1 // second

// answers are those to the errors of what the server serves.
var answers = []struct {
	err    error
	status int
	code   string
}{
	{shell.ErrNoShell, http.StatusServiceUnavailable, wire.CodeNoShell},
	{shell.ErrClosed, http.StatusServiceUnavailable, wire.CodeDraining},
	{shell.ErrQueueFull, http.StatusTooManyRequests, wire.CodeQueueFull},

	{artifact.ErrPath, http.StatusBadRequest, wire.CodeBadRequest},
	{artifact.ErrOutside, http.StatusForbidden, wire.CodeOutsideWorkspace},
	{artifact.ErrNotFound, http.StatusNotFound, wire.CodeNotFound},
	{artifact.ErrShrunk, http.StatusNotFound, wire.CodeNotFound},
	{artifact.ErrRewritten, http.StatusNotFound, wire.CodeNotFound},
	{artifact.ErrChanged, http.StatusConflict, wire.CodeChanged},
	{artifact.ErrDirectory, http.StatusUnprocessableEntity, wire.CodeNotRegular},
	{artifact.ErrKind, http.StatusUnprocessableEntity, wire.CodeNotRegular},
	{artifact.ErrTooLarge, http.StatusRequestEntityTooLarge, wire.CodeTooLarge},
	{artifact.ErrArchive, http.StatusRequestEntityTooLarge, wire.CodeTooLarge},
	{artifact.ErrTotal, http.StatusRequestEntityTooLarge, wire.CodeTooLarge},
	{artifact.ErrSlow, http.StatusRequestEntityTooLarge, wire.CodeTooLarge},
	{archive.ErrEntries, http.StatusRequestEntityTooLarge, wire.CodeTooLarge},
	{archive.ErrDepth, http.StatusRequestEntityTooLarge, wire.CodeTooLarge},
	{archive.ErrBytes, http.StatusRequestEntityTooLarge, wire.CodeTooLarge},
	{artifact.ErrTooMuch, http.StatusTooManyRequests, wire.CodeTooManyArtifacts},
	{artifact.ErrBusy, http.StatusTooManyRequests, wire.CodeTooManyArtifacts},
	{artifact.ErrTooMany, http.StatusTooManyRequests, wire.CodeTooManyArtifacts},
	{artifact.ErrNoSpace, http.StatusInsufficientStorage, wire.CodeNoSpace},
	{artifact.ErrClosed, http.StatusServiceUnavailable, wire.CodeDraining},

	{upload.ErrName, http.StatusBadRequest, wire.CodeBadRequest},
	{upload.ErrBody, http.StatusBadRequest, wire.CodeBadRequest},
	{upload.ErrDirectory, http.StatusForbidden, wire.CodeOutsideWorkspace},
	{upload.ErrForbidden, http.StatusForbidden, wire.CodeForbidden},
	{upload.ErrStalled, http.StatusRequestTimeout, wire.CodeStalled},
	{upload.ErrTaken, http.StatusConflict, wire.CodeNameTaken},
	{upload.ErrTooLarge, http.StatusRequestEntityTooLarge, wire.CodeTooLarge},
	{upload.ErrNoSpace, http.StatusInsufficientStorage, wire.CodeNoSpace},
	{upload.ErrClosed, http.StatusServiceUnavailable, wire.CodeDraining},

	{files.ErrRequest, http.StatusBadRequest, wire.CodeBadRequest},
	{files.ErrOutside, http.StatusForbidden, wire.CodeOutsideWorkspace},
	{files.ErrForbidden, http.StatusForbidden, wire.CodeForbidden},
	{files.ErrNotFound, http.StatusNotFound, wire.CodeNotFound},
	{files.ErrChanged, http.StatusConflict, wire.CodeChanged},
	{files.ErrTooLarge, http.StatusRequestEntityTooLarge, wire.CodeTooLarge},
	{files.ErrOutOfRange, http.StatusRequestedRangeNotSatisfiable, wire.CodeOutOfRange},
	{files.ErrNotRegular, http.StatusUnprocessableEntity, wire.CodeNotRegular},
	{files.ErrNotDirectory, http.StatusUnprocessableEntity, wire.CodeNotDirectory},
	{files.ErrNotText, http.StatusUnprocessableEntity, wire.CodeNotText},
	{files.ErrNoMatch, http.StatusUnprocessableEntity, wire.CodeNoMatch},
	{files.ErrManyMatches, http.StatusUnprocessableEntity, wire.CodeManyMatches},
	{files.ErrNoSpace, http.StatusInsufficientStorage, wire.CodeNoSpace},
	{files.ErrClosed, http.StatusServiceUnavailable, wire.CodeDraining},

	{detached.ErrNotFound, http.StatusNotFound, wire.CodeNotFound},

	{background.ErrTooMany, http.StatusTooManyRequests, wire.CodeTooManyProcesses},
	{background.ErrIDInUse, http.StatusBadRequest, wire.CodeIDInUse},
	{background.ErrNotFound, http.StatusNotFound, wire.CodeNotFound},
	{background.ErrNotRunning, http.StatusUnprocessableEntity, wire.CodeNotRunning},
	{background.ErrInputClosed, http.StatusUnprocessableEntity, wire.CodeInputClosed},
	{background.ErrNoTerminal, http.StatusBadRequest, wire.CodeBadRequest},
	{background.ErrJob, http.StatusUnprocessableEntity, wire.CodeIsJob},
	{background.ErrClosed, http.StatusServiceUnavailable, wire.CodeDraining},
}

// refusalOf answers with an error: what is none of answers is internal.
func refusalOf(err error) *Refusal {
	for _, a := range answers {
		if errors.Is(err, a.err) {
			refusal := refuse(a.status, a.code, a.err.Error())
			if said := (*files.Error)(nil); errors.As(err, &said) {
				refusal.Message = said.Error()
			}
			if a.code == wire.CodeQueueFull {
				refusal.RetryAfter = retryAfter
			}
			return refusal
		}
	}
	return refuse(http.StatusInternalServerError, wire.CodeInternal, err.Error())
}
