package serve

import (
	"net"
	"net/http"

	"github.com/berth-dev/berth/sandbox-agent/initproc"
)

// guard undoes what the session's processes did to the agent's resource limits,
// before each request and when a connection can't be accepted. It costs some
// microseconds.
type guard struct {
	limits *initproc.Limits
	// failed is told why the agent can't go on.
	failed chan<- error
}

// handler guards requests: the kubelet's too, one a second.
func (g guard) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.limits.Restore(); err != nil {
			select {
			case g.failed <- err:
			default: // it ends already
			}
		}
		next.ServeHTTP(w, r)
	})
}

// listener guards connections, and has patience with them.
type listener struct {
	net.Listener
	limits *initproc.Limits
}

// Accept implements net.Listener. net/http tries again after what is temporary,
// as too many open files are.
func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		if broken := l.limits.Restore(); broken != nil {
			return nil, broken
		}
		return nil, err
	}
	return newPatient(conn, patience), nil
}
