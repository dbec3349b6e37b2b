package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// ErrNotSent is matched by an error of a request of which no byte left: it did
// not run, and may be repeated.
var ErrNotSent = errors.New("request was not sent")

// ErrNoKey is matched by an error of a request to a pod that was born with keys
// of which the signer has none. It matches ErrNotSent too.
var ErrNoKey = errors.New("no private key")

// ErrBadAnswer is matched by an error for an answer that no honest agent
// gives: too long, malformed, or of impossible values.
var ErrBadAnswer = errors.New("agent gave a bad answer")

// ErrBody is matched by an error of an upload whose body could not be read to
// its end. Nothing is left of it.
var ErrBody = errors.New("the body could not be read")

// What an agent refuses with. The request did not run, but for ErrCancelled.
var (
	ErrUnauthorized     = errors.New("agent refused the token")         // 401: another pod has this address
	ErrSessionRequired  = errors.New("agent has no session bound")      // 409: Bind, then repeat once
	ErrSessionBound     = errors.New("agent serves another Sandbox")    // 409
	ErrGone             = errors.New("agent no longer takes requests")  // 410
	ErrNotFound         = errors.New("not found")                       // 404
	ErrOutsideWorkspace = errors.New("path is outside the workspace")   // 403
	ErrForbidden        = errors.New("not allowed in the sandbox")      // 403
	ErrNameTaken        = errors.New("all names like it are taken")     // 409
	ErrStalled          = errors.New("the upload stalled")              // 408
	ErrChanged          = errors.New("the file changed meanwhile")      // 409: repeat
	ErrCancelled        = errors.New("the call was cancelled")          // 409: by CancelCall; it may have run
	ErrManyCalls        = errors.New("calls of several clients")        // 409: CancelCall ended none
	ErrNotRegular       = errors.New("not a regular file")              // 422
	ErrNotDirectory     = errors.New("not a directory")                 // 422
	ErrNotText          = errors.New("not text, so without lines")      // 422
	ErrNoMatch          = errors.New("what to replace is not there")    // 422
	ErrManyMatches      = errors.New("what to replace is not unique")   // 422
	ErrNotRunning       = errors.New("the process has ended")           // 422
	ErrInputClosed      = errors.New("the process takes no more input") // 422
	ErrIsJob            = errors.New("a job of the shell's own")        // 422: reach it through Exec
	ErrTooLarge         = errors.New("larger than the limit")           // 413
	ErrQueueFull        = errors.New("too many commands wait")          // 429
	ErrTooManyArtifacts = errors.New("too many artifacts are held")     // 429
	ErrTooManyProcesses = errors.New("too many processes run")          // 429
	ErrNoShell          = errors.New("the image has no shell")          // 503
	ErrDraining         = errors.New("agent is shutting down")          // 503
	ErrNoSpace          = errors.New("no space left in the sandbox")    // 507
	ErrRange            = errors.New("range is not within the file")    // 416
	ErrNoRoute          = errors.New("agent is older than its client")  // 404, 405
)

var errorOf = map[string]error{
	wire.CodeUnauthorized:     ErrUnauthorized,
	wire.CodeSessionRequired:  ErrSessionRequired,
	wire.CodeSessionBound:     ErrSessionBound,
	wire.CodeQuiesced:         ErrGone,
	wire.CodeNotFound:         ErrNotFound,
	wire.CodeOutsideWorkspace: ErrOutsideWorkspace,
	wire.CodeForbidden:        ErrForbidden,
	wire.CodeNameTaken:        ErrNameTaken,
	wire.CodeStalled:          ErrStalled,
	wire.CodeChanged:          ErrChanged,
	wire.CodeCancelled:        ErrCancelled,
	wire.CodeManyCalls:        ErrManyCalls,
	wire.CodeNotRegular:       ErrNotRegular,
	wire.CodeNotDirectory:     ErrNotDirectory,
	wire.CodeNotText:          ErrNotText,
	wire.CodeNoMatch:          ErrNoMatch,
	wire.CodeManyMatches:      ErrManyMatches,
	wire.CodeNotRunning:       ErrNotRunning,
	wire.CodeInputClosed:      ErrInputClosed,
	wire.CodeIsJob:            ErrIsJob,
	wire.CodeTooLarge:         ErrTooLarge,
	wire.CodeQueueFull:        ErrQueueFull,
	wire.CodeTooManyArtifacts: ErrTooManyArtifacts,
	wire.CodeTooManyProcesses: ErrTooManyProcesses,
	wire.CodeNoShell:          ErrNoShell,
	wire.CodeDraining:         ErrDraining,
	wire.CodeNoSpace:          ErrNoSpace,
}

// Error is an agent's refusal. Message comes from the sandbox: it may be shown
// to the session's own caller, bounded and cleaned as it is, and to no one else.
type Error struct {
	Status  int // HTTP, 400 or more
	Code    string
	Message string
	// RetryAfter is set for ErrQueueFull.
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	return fmt.Sprintf("agent answered %d %s: %s", e.Status, e.Code, e.Message)
}

// Is matches the sentinel of e's code. A status that says it all counts even
// when the body is not an agent's.
func (e *Error) Is(target error) bool {
	switch e.Status {
	case http.StatusUnauthorized:
		return target == ErrUnauthorized
	case http.StatusGone:
		return target == ErrGone
	case http.StatusRequestedRangeNotSatisfiable:
		return target == ErrRange
	case http.StatusMethodNotAllowed:
		return target == ErrNoRoute
	}
	if e.Code == wire.CodeNotFound && strings.HasPrefix(e.Message, wire.NoRoute) {
		return target == ErrNoRoute
	}
	known, ok := errorOf[e.Code]
	return ok && known == target
}

// notSent marks err as one of a request that never left.
type notSent struct{ err error }

func (e notSent) Error() string        { return "not sent: " + e.err.Error() }
func (e notSent) Unwrap() error        { return e.err }
func (e notSent) Is(target error) bool { return target == ErrNotSent }

func badAnswer(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBadAnswer, fmt.Sprintf(format, args...))
}
