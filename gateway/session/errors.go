package session

import (
	"errors"
	"fmt"
	"time"
)

// Errors of resolving a session.
var (
	// ErrNotAvailable is all that another caller learns of a session.
	ErrNotAvailable = errors.New("session not available")
	// ErrNotFound means that there is no such session and none was to be made.
	ErrNotFound = errors.New("session not found: create a Sandbox of that name first, this gateway makes none on demand")
	// ErrForbidden means that the caller may not use sessions of that name.
	ErrForbidden = errors.New("not allowed: the caller needs a role that grants this verb on sandboxes/session in the session's namespace")
)

// NotReadyError is a session whose pod does not serve, and why.
type NotReadyError struct {
	Key Key
	// Reason and Message are those of the Sandbox's Ready condition.
	Reason  string
	Message string
	// Waited is how long the gateway waited for it; 0 when waiting is useless.
	Waited time.Duration
}

func (e *NotReadyError) Error() string {
	text := fmt.Sprintf("session %q is not ready", e.Key.Name)
	if e.Waited > 0 {
		text += fmt.Sprintf(" after %s", e.Waited.Round(time.Second))
	}
	if e.Reason == "" {
		return text + ": the controller has not looked at it yet; is it running?"
	}
	text += ": " + e.Reason
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// notReady describes r, which may be nil.
func notReady(key Key, r *Record, waited time.Duration) error {
	e := &NotReadyError{Key: key, Waited: waited}
	if r != nil {
		e.Reason, e.Message = r.Reason, r.Message
		if r.Deleting {
			e.Reason, e.Message = "Deleting", "the sandbox is being deleted"
		}
	}
	return e
}

// apiError is a question that the API server did not answer. Its text is for
// the caller; the error below it, which may name addresses, is for the log.
type apiError struct {
	text string
	err  error
}

func (e *apiError) Error() string { return e.text }

func (e *apiError) Unwrap() error { return e.err }
