package wire

import "time"

// Bounds of the results of detached commands.
const (
	// MaxDetachedResults is how many results are kept at a time, and
	// DetachedResultBytes how long they may be together, encoded. The oldest makes
	// room.
	MaxDetachedResults  = 64
	DetachedResultBytes = 64 << 20
	// DetachedLifetimeSeconds is how long a result is kept after its command's end.
	DetachedLifetimeSeconds = 3600
	// MaxExecWait bounds a long poll for a command's end, in seconds.
	MaxExecWait = 60
)

// ExecWait is the parameter of GET /v1/exec/{id}: seconds to wait for the
// command's end, 0 without it, more than MaxExecWait is that.
const ExecWait = "wait"

// ExecState is how a detached command is: the answer of GET /v1/exec/{id}, and
// with status 202 that of POST /v1/exec when its command was detached.
type ExecState struct {
	ID      string `json:"id"`
	Running bool   `json:"running"`
	// Sent is when the command came, Ended when it ended.
	Sent  time.Time  `json:"sent"`
	Ended *time.Time `json:"ended,omitempty"`
	// ExpiresIn is how many seconds the result is still kept for, once there is one.
	ExpiresIn int `json:"expires_in,omitempty"`
	// Cancelled says that DELETE /v1/exec/{id} ended it.
	Cancelled bool `json:"cancelled,omitempty"`
	// One of these is there once it has ended: what it did, or why it did not run.
	Result *ExecResult  `json:"result,omitempty"`
	Error  *ErrorDetail `json:"error,omitempty"`
}
