// Package audit writes one line for each call: who, which session, which tool,
// how much, how long, with what result. A line never holds a command, an output,
// a path, an artifact's token or a bearer token, so its fields are all there is.
package audit

import (
	"context"
	"log/slog"
	"time"

	"github.com/berth-dev/berth/gateway/authn"
)

// Codes of a call's result, which metrics use as a label too.
const (
	CodeOK        = "ok"
	CodeExit      = "exit_nonzero" // a command that ran and failed
	CodeInvalid   = "invalid"      // refused before anything was asked
	CodeForbidden = "forbidden"
	CodeNotFound  = "not_found"
	CodeFailed    = "failed"
	CodeCancelled = "cancelled"
	CodePanic     = "panic"
)

// Call is one tool call, resource read or deletion.
type Call struct {
	// Operation is an MCP method or an HTTP route; Tool is empty for what is none.
	Operation string
	Tool      string
	Namespace string
	Session   string
	// InBytes and OutBytes are sizes of what the caller sent and of the payload
	// that it got.
	InBytes  int64
	OutBytes int64
	Code     string
	Duration time.Duration
}

// Log writes the line of a finished call.
func Log(ctx context.Context, log *slog.Logger, c *Call) {
	user := ""
	if caller, ok := authn.FromContext(ctx); ok {
		user = caller.User.Username
	}
	log.LogAttrs(ctx, slog.LevelInfo, "Call finished",
		slog.Bool("audit", true),
		slog.String("caller", user),
		slog.String("operation", c.Operation),
		slog.String("tool", c.Tool),
		slog.String("namespace", c.Namespace),
		slog.String("session", c.Session),
		slog.Int64("inBytes", c.InBytes),
		slog.Int64("outBytes", c.OutBytes),
		slog.Float64("seconds", c.Duration.Seconds()),
		slog.String("code", c.Code),
	)
}

type contextKey struct{}

// WithCall returns a context whose handlers fill in c.
func WithCall(ctx context.Context, c *Call) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// FromContext returns the call that WithCall stored. Outside of one it returns a
// record that nobody reads.
func FromContext(ctx context.Context) *Call {
	if c, ok := ctx.Value(contextKey{}).(*Call); ok {
		return c
	}
	return &Call{}
}
