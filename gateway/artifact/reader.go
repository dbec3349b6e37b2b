package artifact

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/authz"
	"github.com/berth-dev/berth/gateway/session"
)

// Reader opens artifacts for whoever may read them. Every way to read one goes
// through it: resources/read, read_artifact and GET /artifacts/{token}.
type Reader struct {
	Authorizer authz.Authorizer
	Source     Source
	Log        *slog.Logger
}

// Open opens a part of an artifact for the caller of ctx. It needs no
// X-Session-ID: the handle names the session, and its namespace. But if header
// names either, it must be that one.
//
// An error that is ErrNotFound is all that a caller may learn of: it may also be
// session.ErrForbidden or session.ErrNotAvailable, for the audit. Any other
// error's text is for the caller.
//
// What is answered without asking anybody depends on the request alone. Whether
// a session is another's or doesn't exist costs the same: one access review, and
// a look at what the watch told.
func (r *Reader) Open(ctx context.Context, header http.Header, handle Handle, part Part) (*Reading, error) {
	caller, ok := authn.FromContext(ctx)
	if !ok || !sameSession(header, handle) {
		return nil, ErrNotFound
	}
	allowed, err := r.Authorizer.Allowed(ctx, caller, authz.Get, handle.Namespace, handle.Name)
	switch {
	case err != nil:
		r.Log.ErrorContext(ctx, "Caller could not be authorized", "namespace", handle.Namespace, "session", handle.Name, "error", err)
		return nil, authz.ErrUnavailable
	case !allowed:
		return nil, fmt.Errorf("%w: %w", ErrNotFound, session.ErrForbidden)
	}
	return r.Source.Open(ctx, caller, handle, part)
}

// sameSession tells whether what a request says of the session is the artifact's.
func sameSession(header http.Header, handle Handle) bool {
	is := func(name, value string) bool {
		values := header.Values(name)
		return len(values) == 0 || len(values) == 1 && values[0] == value
	}
	return is(session.Header, handle.Name) && is(session.NamespaceHeader, handle.Namespace)
}
