package mcpserver

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/cancellation"
	"github.com/berth-dev/berth/gateway/tasks"
)

// serveTasks makes server serve the tasks of source, and calls of it become some.
func (s *Server) serveTasks(server *mcp.Server, source tasks.Source) {
	s.tasks = source
	if err := tasks.Serve(server, source); err != nil {
		panic("mcpserver: " + err.Error()) // a name of this package is the SDK's
	}
}

// listening serves what the SDK doesn't know of tasks: notifications of them, and the
// header that names one.
func (s *Server) listening(next http.Handler) http.Handler {
	listener := tasks.Listener{Source: s.tasks, Enter: s.Places.Enter, Panicked: s.panicked, Next: next, Ended: s.listened}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == tasks.MethodListen {
			ctx, stop := cancellation.Follow(r.Context())
			defer stop()
			r = r.WithContext(ctx)
		}
		listener.ServeHTTP(w, r)
	})
}

func (s *Server) listened(ctx context.Context, call *audit.Call) { audit.Log(ctx, s.Log, call) }

func (s *Server) panicked(ctx context.Context, p any) {
	s.Log.ErrorContext(ctx, "Handler panicked", "method", tasks.MethodListen, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
}
