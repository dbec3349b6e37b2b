package gateway

import (
	"context"
	"net"

	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/authz"
	"github.com/berth-dev/berth/gateway/dispatch"
	"github.com/berth-dev/berth/gateway/front"
)

// backend is where sessions are and who may use them: all that a gateway in front
// of a cluster has and another one doesn't.
type backend struct {
	sessions interface {
		dispatch.Sessions
		front.Ender
	}
	authenticator authn.Authenticator
	authorizer    authz.Authorizer
	// run does what must be done for as long as calls are served, and returns when
	// its context has ended and nothing is left to do.
	run func(context.Context)
	// wait returns once there is something to serve with, which waitsFor names.
	wait     func(context.Context) error
	waitsFor string
	// serving is told where calls are served from now on.
	serving func(net.Addr)
}
