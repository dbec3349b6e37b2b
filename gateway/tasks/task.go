package tasks

import (
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Extension is what client and server declare in their capabilities.
const Extension = "io.modelcontextprotocol/tasks"

// Status is that of a task.
type Status string

// Statuses. The last three are final.
const (
	Working       Status = "working"
	InputRequired Status = "input_required"
	Completed     Status = "completed"
	Cancelled     Status = "cancelled"
	Failed        Status = "failed"
)

// Final tells whether a task of this status never has another one.
func (s Status) Final() bool { return s == Completed || s == Cancelled || s == Failed }

// Task is the extension's DetailedTask.
type Task struct {
	ID      string `json:"taskId"`
	Status  Status `json:"status"`
	Message string `json:"statusMessage,omitempty"`
	Created Time   `json:"createdAt"`
	Updated Time   `json:"lastUpdatedAt"`
	// TTL is for how many milliseconds after Created it is kept; nil says that no
	// time ends it.
	TTL *int64 `json:"ttlMs"`
	// PollInterval is how many milliseconds a client is to wait before it asks again.
	PollInterval int64 `json:"pollIntervalMs,omitempty"`
	// One of these, as Status says, or none.
	InputRequests mcp.InputRequestMap `json:"inputRequests,omitempty"`
	Result        *mcp.CallToolResult `json:"result,omitempty"`
	Error         *Error              `json:"error,omitempty"`
}

// Error is the JSON-RPC error that a task failed with.
type Error struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
}

// PollInterval is that of tasks that work: a client that doesn't listen asks so
// often.
const PollInterval = 2 * time.Second

// Fail makes t a task that failed for that reason. A command that ran and failed is
// no such task, it is completed.
func (t *Task) Fail(reason string) {
	t.Status, t.Message, t.Result = Failed, reason, nil
	t.Error = &Error{Code: jsonrpc.CodeInternalError, Message: reason}
}

// Keep says that t is kept for so long after its end, which was then.
func (t *Task) Keep(end time.Time, lifetime time.Duration) {
	t.Updated = Time{end}
	ttl := max(1, (end.Sub(t.Created.Time) + lifetime).Milliseconds())
	t.TTL = &ttl
}

// Time is written in UTC, to the millisecond.
type Time struct{ time.Time }

// MarshalText implements encoding.TextMarshaler.
func (t Time) MarshalText() ([]byte, error) {
	return []byte(t.UTC().Format("2006-01-02T15:04:05.000Z")), nil
}

// MarshalJSON implements json.Marshaler, in place of that of time.Time.
func (t Time) MarshalJSON() ([]byte, error) {
	text, err := t.MarshalText()
	return append(append([]byte{'"'}, text...), '"'), err
}

// resultComplete and resultTask are what a result says of itself.
const (
	resultComplete = "complete"
	resultTask     = "task"
)

// CreateResult answers a tool's call in place of its result.
type CreateResult struct {
	mcp.ResultBase
	ResultType string `json:"resultType"`
	Task
}

// GetResult answers tasks/get.
type GetResult struct {
	mcp.ResultBase
	ResultType string `json:"resultType"`
	Task
}

// Acknowledgement answers tasks/cancel and tasks/update.
type Acknowledgement struct {
	mcp.ResultBase
	ResultType string `json:"resultType"`
}
