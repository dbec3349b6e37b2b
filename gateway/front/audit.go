package front

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/berth-dev/berth/gateway/authn"
)

// audit notes each request that was refused before it became a call. A call has
// a line of its own, which says more.
func (f *Front) audit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &statusWriter{ResponseWriter: w}
		t := &trail{}
		next.ServeHTTP(s, r.WithContext(context.WithValue(r.Context(), trailKey{}, t)))
		if s.status < http.StatusBadRequest {
			return
		}
		f.Log.LogAttrs(r.Context(), slog.LevelInfo, "Request refused",
			slog.Bool("audit", true),
			slog.String("caller", t.caller),
			slog.String("method", r.Method),
			slog.String("route", route(r.URL.Path)),
			slog.String("remote", r.RemoteAddr),
			slog.Int("status", s.status),
		)
	})
}

// trail carries outwards who was found to be calling.
type trail struct{ caller string }

type trailKey struct{}

func noteCaller(ctx context.Context, caller *authn.Caller) {
	if t, ok := ctx.Value(trailKey{}).(*trail); ok {
		t.caller = caller.User.Username
	}
}

// route names the route, because a path may hold what a log must not.
func route(path string) string {
	switch {
	case path == "/mcp":
		return "/mcp"
	case strings.HasPrefix(path, artifactsPath):
		return "/artifacts/{token}"
	case isUploadPath(path):
		return "/sessions/{id}/files"
	case path == metadataPath, path == metadataPath+"/mcp":
		return metadataPath
	case path == "/sessions", strings.HasPrefix(path, "/sessions/"):
		return "/sessions/{id}"
	default:
		return "none"
	}
}

// statusWriter remembers the status.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (s *statusWriter) WriteHeader(status int) {
	if s.status == 0 {
		s.status = status
	}
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (s *statusWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }
