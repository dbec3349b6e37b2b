package gateway

import (
	"errors"
	"log/slog"
	"net"

	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/authz"
	"github.com/berth-dev/berth/gateway/standalone"
	agent "github.com/berth-dev/berth/sandbox-agent/client"
)

// NewStandalone puts a gateway together that needs no cluster.
func NewStandalone(options Options, version string, log *slog.Logger) (*Gateway, error) {
	var sessions *standalone.Sessions
	agents := agent.Options{Socket: func(podUID string) string { return sessions.Socket(podUID) }}
	return assemble(options, agents, version, log, func(g *Gateway) (*backend, error) {
		var err error
		if sessions, err = g.sessionsHere(); err != nil {
			return nil, err
		}
		g.agents.SetSigner(sessions.Signer())
		return &backend{
			sessions:      sessions,
			authenticator: authn.NewNone(),
			authorizer:    authz.Anyone{},
			run:           sessions.Run,
			wait:          sessions.Start,
			waitsFor:      "a first agent to start, as a trial",
			serving:       func(address net.Addr) { sessions.Welcome(options.scheme(), address) },
		}, nil
	})
}

func (g *Gateway) sessionsHere() (*standalone.Sessions, error) {
	store, err := g.onlyStore()
	if err != nil {
		return nil, err
	}
	return standalone.New(standalone.Options{
		Agent:         g.options.Standalone.Agent,
		Max:           g.options.Standalone.MaxSessions,
		ReadyTimeout:  g.options.ReadyTimeout,
		ArtifactStore: store,
		Records:       g.store,
		Observe:       g.metrics.Resolve,
		Log:           g.log,
		Out:           g.options.Standalone.Out,
	})
}

// onlyStore is the artifact store of sessions that no template names one for.
func (g *Gateway) onlyStore() (string, error) {
	if len(g.stores) > 1 {
		return "", errors.New("--artifact-stores with --standalone: the file must define one store, since there is no template that could choose")
	}
	for name := range g.stores {
		return name, nil
	}
	return "", nil
}
