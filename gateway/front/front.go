// Package front is the gateway's HTTP surface: what a request passes before it
// reaches the MCP server, and the routes beside it.
//
// A request passes, in this order: identify (what it is called in logs and
// errors), limit (how long its body may be and take), origin (which names and
// which web pages it may use), audit, once (what may not be said twice), metadata
// (where tokens come from needs none), authenticate, choose (which namespace and
// template it may name) and, to the MCP server, keep-alive (silent calls survive
// proxies) and cancel (calls end with their callers). Each is a file of its own.
package front

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/authz"
	"github.com/berth-dev/berth/gateway/cancellation"
	"github.com/berth-dev/berth/gateway/dispatch"
	"github.com/berth-dev/berth/gateway/metrics"
	"github.com/berth-dev/berth/gateway/places"
	"github.com/berth-dev/berth/gateway/room"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/gateway/tracing"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// Ender deletes sessions.
type Ender interface {
	End(ctx context.Context, key session.Key, caller *authn.Caller) error
}

// Uploads puts files into sessions.
type Uploads interface {
	Upload(ctx context.Context, req session.Request, u dispatch.Upload) (f *client.File, notice string, err error)
}

// Options of the front.
type Options struct {
	// MaxBody bounds a request body, in bytes; BodyTimeout how long it may take.
	MaxBody     int64
	BodyTimeout time.Duration
	Origins     Origins
	Resource    Resource
	KeepAlive   KeepAlive
	Streams     Streams
	// Draining ends when the gateway begins to shut down, Ending when calls that
	// are still under way must end.
	Draining context.Context
	Ending   context.Context
}

// Front holds what the routes need.
type Front struct {
	Authenticator authn.Authenticator
	Authorizer    authz.Authorizer
	Sessions      Ender
	Uploads       Uploads
	Artifacts     Artifacts
	Namespaces    session.Namespaces
	Calls         *cancellation.Registry
	Cancels       Canceller
	// Places bounds the calls under way: MCP's, and uploads.
	Places  *places.Places
	Metrics *metrics.Metrics
	Tracer  *tracing.Tracer
	Log     *slog.Logger
	Options Options

	bodies  *room.Room
	streams *places.Places
}

// Handler returns the routes: mcp at /mcp, DELETE /sessions/{id},
// POST /sessions/{id}/files and GET /artifacts/{token}.
func (f *Front) Handler(mcp http.Handler) http.Handler {
	f.bodies = newBodies(f.Options.MaxBody)
	f.streams = places.New(f.Options.Streams.Max, f.Options.Streams.Each)
	mux := http.NewServeMux()
	mux.Handle("/mcp", f.Options.KeepAlive.wrap(f.cancel(mcp)))
	mux.HandleFunc("DELETE /sessions/{id...}", f.deleteSession)
	mux.HandleFunc("DELETE /sessions", f.deleteSession)
	mux.HandleFunc("POST /sessions/{id}/files", f.upload)
	routed := unrouted(mux)
	routes := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The mux would redirect what is no clean path, where it is to be as unknown
		// as any other token.
		if token, ok := strings.CutPrefix(r.URL.Path, artifactsPath); ok {
			f.artifact(w, r, token)
			return
		}
		routed.ServeHTTP(w, r)
	})
	return identify(f.limit(f.origin(f.audit(f.once(f.metadata(f.authenticate(f.choose(routes))))))))
}
