package artifact

import (
	"context"
	"errors"
	"io"

	"github.com/berth-dev/berth/gateway/authn"
)

// ErrNotFound is an artifact that is unknown, expired, another caller's or gone
// with its session: its reader learns no more.
var ErrNotFound = errors.New("artifact not found")

// ErrRange is a part that begins at or beyond the artifact's end.
var ErrRange = errors.New("the offset is at or beyond the end")

// Reading is an artifact that is being read.
type Reading struct {
	Name     string
	MIMEType string
	// Size is that of all of it, in bytes.
	Size int64
	// SHA256 is that of all of it, in hex; empty if it isn't known.
	SHA256 string
	// ETag is a strong entity tag, with its quotation marks (RFC 9110 §8.8.3).
	ETag string
	// ExpiresIn is how long it can still be opened, in seconds.
	ExpiresIn int
	// Offset and Length are which bytes Body yields: exactly these, or an error
	// whose text is for the caller. Who has the reading closes it. It ends with
	// the context that it was opened with.
	Offset, Length int64
	Body           io.ReadCloser
}

// Source is where artifacts are.
type Source interface {
	// Open opens a part of an artifact for a caller who has the right to use the
	// handle's session. It checks itself that the artifact is the caller's. It
	// returns ErrNotFound, ErrRange, or an error whose text is for the caller.
	Open(ctx context.Context, caller *authn.Caller, handle Handle, part Part) (*Reading, error)
}
