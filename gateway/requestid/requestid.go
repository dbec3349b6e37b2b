// Package requestid names requests, so that an error which a caller reports finds
// its lines in the logs, on whichever replica they are.
package requestid

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
)

// Header is the HTTP header that carries a request's id, both ways.
const Header = "X-Request-ID"

// longest is how long an id of a caller's own may be, in bytes.
const longest = 64

// For returns the id of a request: its caller's own, for one that has traced it
// from further away, if it is a single one of 1 to 64 letters, digits, '.', '_' and
// '-'; else a new one of 16 hexadecimal digits. What goes into logs and answers is
// never longer or stranger than that.
func For(r *http.Request) string {
	if own := r.Header.Values(Header); len(own) == 1 && valid(own[0]) {
		return own[0]
	}
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func valid(id string) bool {
	for _, c := range []byte(id) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return id != "" && len(id) <= longest
}

type contextKey struct{}

// With returns a context whose request has this id.
func With(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, contextKey{}, id)
}

// From returns the id that With stored, or "".
func From(ctx context.Context) string {
	id, _ := ctx.Value(contextKey{}).(string)
	return id
}

// Mention is what an error's text ends with: " (request 7f3a...)", or "" outside of
// a request.
func Mention(ctx context.Context) string {
	if id := From(ctx); id != "" {
		return " (request " + id + ")"
	}
	return ""
}

// Handler adds the request's id to each record that next logs for one.
func Handler(next slog.Handler) slog.Handler { return handler{next} }

type handler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if id := From(ctx); id != "" {
		r = r.Clone()
		r.AddAttrs(slog.String("request", id))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
