// Package gateway puts the gateway together: MCP over HTTP in front of session
// pods, without any state of its own.
//
// A call goes front (HTTP: who calls) -> mcpserver (MCP: which tool) -> session
// (which pod) -> dispatch (the call itself) -> the agents' client.
package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/artifactstore"
	"github.com/berth-dev/berth/gateway/cancellation"
	"github.com/berth-dev/berth/gateway/dispatch"
	"github.com/berth-dev/berth/gateway/front"
	"github.com/berth-dev/berth/gateway/logline"
	"github.com/berth-dev/berth/gateway/mcpserver"
	"github.com/berth-dev/berth/gateway/metrics"
	"github.com/berth-dev/berth/gateway/places"
	"github.com/berth-dev/berth/gateway/requestid"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/gateway/tracing"
	agent "github.com/berth-dev/berth/sandbox-agent/client"
)

// bodyTimeout is how long a request's body may take to arrive.
const bodyTimeout = 30 * time.Second

// writeTimeout is how long a client may take to read one event, of at most
// some 11 MiB.
const writeTimeout = 5 * time.Minute

// Artifacts on their way over HTTP: how many at a time, how long a client may
// take to read one piece, and all of it. Their number bounds what clients hold
// that hardly read; one caller may have three quarters of it.
const (
	maxStreams    = 64
	streamsEach   = maxStreams * 3 / 4
	streamStall   = 30 * time.Second
	longestStream = time.Hour
)

// Gateway is one replica.
type Gateway struct {
	options Options
	log     *slog.Logger
	agents  *agent.Client
	store   *session.Store
	backend *backend
	stores  artifactstore.Stores
	metrics *metrics.Metrics
	handler http.Handler
	// certificate is that of TLS, or nil.
	certificate *certificate

	// draining ends when the shutdown begins.
	draining context.Context
	drain    context.CancelFunc
	// ending ends when calls that outlast the shutdown must end.
	ending context.Context
	end    context.CancelFunc
	// loaded is closed when there is something to serve with.
	loaded chan struct{}
}

// New puts a gateway in front of a cluster together. agents says how agents are
// reached; its zero value is right but in tests.
func New(options Options, c client.WithWatch, agents agent.Options, version string, log *slog.Logger) (*Gateway, error) {
	return assemble(options, agents, version, log, func(g *Gateway) (*backend, error) { return g.cluster(c) })
}

// assemble puts together what is the same wherever sessions are.
func assemble(options Options, agents agent.Options, version string, log *slog.Logger, where func(*Gateway) (*backend, error)) (*Gateway, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	log = slog.New(logline.Handler(requestid.Handler(log.Handler())))
	g := &Gateway{options: options, log: log, store: session.NewStore(), loaded: make(chan struct{})}
	g.draining, g.drain = context.WithCancel(context.Background())
	g.ending, g.end = context.WithCancel(context.Background())
	g.metrics = metrics.New(g.store.Len)
	agents.Admit = dispatch.AdmitResults()
	tracer := tracing.New(options.Traces)
	if tracer != nil {
		agents.Propagate = tracing.Propagate
	}
	g.agents = agent.New(nil, agents)
	if err := g.loadStores(); err != nil {
		return nil, err
	}
	var err error
	if g.certificate, err = loadCertificate(&options, log); err != nil {
		return nil, err
	}
	if g.backend, err = where(g); err != nil {
		return nil, err
	}
	g.handler = g.newHandler(tracer, version)
	return g, nil
}

// newHandler puts together what a request passes: the front, then MCP's server, then
// the dispatcher.
func (g *Gateway) newHandler(tracer *tracing.Tracer, version string) http.Handler {
	calls := dispatch.New(g.agents, g.backend.sessions, g.store, g.stores, g.log, g.metrics.Trouble)
	artifacts := &artifact.Reader{Authorizer: g.backend.authorizer, Source: artifactstore.Source{Stores: g.stores, Agents: calls}, Log: g.log}
	namespaces := session.Namespaces{Default: g.options.Namespace}
	underWay := places.New(g.options.MaxCalls, max(1, g.options.MaxCalls*3/4))
	mcp := mcpserver.Server{
		Calls:      calls,
		Artifacts:  artifacts,
		Authorizer: g.backend.authorizer,
		Namespaces: namespaces,
		Metrics:    g.metrics,
		Tracer:     tracer,
		TaskAfter:  g.options.TaskAfter,
		Places:     underWay,
		Log:        g.log,
		Version:    version,
		MaxBody:    g.options.MaxBody,
	}
	f := front.Front{
		Authenticator: g.backend.authenticator,
		Authorizer:    g.backend.authorizer,
		Sessions:      g.backend.sessions,
		Uploads:       calls,
		Artifacts:     artifacts,
		Namespaces:    namespaces,
		Calls:         cancellation.NewRegistry(time.Now),
		Cancels:       calls,
		Places:        underWay,
		Metrics:       g.metrics,
		Tracer:        tracer,
		Log:           g.log,
		Options:       g.frontOptions(),
	}
	return f.Handler(mcp.Handler())
}

// frontOptions are those of the front: limits of requests, and how they end.
func (g *Gateway) frontOptions() front.Options {
	return front.Options{
		MaxBody:     g.options.MaxBody,
		BodyTimeout: bodyTimeout,
		Origins: front.Origins{
			Hosts:    g.options.AllowedHosts,
			Origins:  g.options.AllowedOrigins,
			Loopback: g.options.loopback(),
		},
		Resource:  g.options.resource(),
		KeepAlive: front.KeepAlive{Flush: g.options.FlushAfter, Interval: g.options.KeepAlive, WriteTimeout: writeTimeout},
		Streams:   front.Streams{Max: maxStreams, Each: streamsEach, Stall: streamStall, Longest: longestStream},
		Draining:  g.draining,
		Ending:    g.ending,
	}
}

// loadStores makes the artifact stores of the configuration, if there is one.
func (g *Gateway) loadStores() error {
	if g.options.ArtifactStores == "" {
		return nil
	}
	configs, err := artifactstore.Load(g.options.ArtifactStores)
	if err != nil {
		return err
	}
	g.stores, err = artifactstore.New(configs, artifactstore.Options{
		Now: time.Now, Log: g.log, Observe: g.metrics.StoreOperation, Swept: g.metrics.Swept,
	})
	return err
}
