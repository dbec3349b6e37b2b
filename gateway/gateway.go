// Package gateway puts the gateway together: MCP over HTTP in front of session
// pods, without any state of its own.
//
// A call goes front (HTTP: who calls) -> mcpserver (MCP: which tool) -> session
// (which pod) -> dispatch (the call itself) -> the agents' client.
package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/artifactstore"
	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/authz"
	"github.com/berth-dev/berth/gateway/cancellation"
	"github.com/berth-dev/berth/gateway/dispatch"
	"github.com/berth-dev/berth/gateway/front"
	"github.com/berth-dev/berth/gateway/keyring"
	"github.com/berth-dev/berth/gateway/mcpserver"
	"github.com/berth-dev/berth/gateway/metrics"
	"github.com/berth-dev/berth/gateway/requestid"
	"github.com/berth-dev/berth/gateway/session"
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
	client  client.WithWatch
	agents  *agent.Client
	store   *session.Store
	ring    *keyring.Ring
	stores  artifactstore.Stores
	metrics *metrics.Metrics
	handler http.Handler

	// draining ends when the shutdown begins.
	draining context.Context
	drain    context.CancelFunc
	// ending ends when calls that outlast the shutdown must end.
	ending context.Context
	end    context.CancelFunc
	// loaded is closed when the signing keys are there.
	loaded chan struct{}
}

// New puts a gateway together. agents says how agents are reached; its zero
// value is right but in tests.
func New(options Options, c client.WithWatch, agents agent.Options, version string, log *slog.Logger) (*Gateway, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	log = slog.New(requestid.Handler(log.Handler()))
	g := &Gateway{options: options, log: log, client: c, store: session.NewStore(), loaded: make(chan struct{})}
	g.draining, g.drain = context.WithCancel(context.Background())
	g.ending, g.end = context.WithCancel(context.Background())
	g.metrics = metrics.New(g.store.Len)
	agents.Admit = dispatch.AdmitResults()
	g.agents = agent.New(nil, agents)
	g.ring = keyring.New(options.KeyNamespace, options.KeyName, log, g.agents.SetSigner)

	if err := g.loadStores(); err != nil {
		return nil, err
	}
	authenticator, err := g.authenticator()
	if err != nil {
		return nil, err
	}
	authorizer := authz.NewSubjectAccessReview(c, time.Now, g.metrics.Review("access"))
	namespaces := session.Namespaces{Default: options.Namespace}
	resolver := session.NewResolver(c, g.store, session.Options{
		Create:        options.CreateSandboxes,
		Template:      options.Template,
		StartDeadline: options.StartDeadline,
		ReadyTimeout:  options.ReadyTimeout,
		Observe:       g.metrics.Resolve,
		Log:           log,
	})
	calls := dispatch.New(g.agents, resolver, g.store, log, g.metrics.Trouble)
	calls.KeepIn(g.stores)
	artifacts := &artifact.Reader{Authorizer: authorizer, Source: artifactstore.Source{Stores: g.stores, Agents: calls}, Log: log}
	mcp := mcpserver.Server{
		Calls:      calls,
		Artifacts:  artifacts,
		Authorizer: authorizer,
		Namespaces: namespaces,
		Metrics:    g.metrics,
		Log:        log,
		Version:    version,
		MaxBody:    options.MaxBody,
	}
	f := front.Front{
		Authenticator: authenticator,
		Authorizer:    authorizer,
		Sessions:      resolver,
		Uploads:       calls,
		Artifacts:     artifacts,
		Namespaces:    namespaces,
		Calls:         cancellation.NewRegistry(time.Now),
		Cancels:       calls,
		Metrics:       g.metrics,
		Log:           log,
		Options: front.Options{
			MaxBody:     options.MaxBody,
			BodyTimeout: bodyTimeout,
			Origins: front.Origins{
				Hosts:    options.AllowedHosts,
				Origins:  options.AllowedOrigins,
				Loopback: options.loopback(),
			},
			KeepAlive: front.KeepAlive{Flush: options.FlushAfter, Interval: options.KeepAlive, WriteTimeout: writeTimeout},
			Streams:   front.Streams{Max: maxStreams, Each: streamsEach, Stall: streamStall, Longest: longestStream},
			Draining:  g.draining,
			Ending:    g.ending,
		},
	}
	g.handler = f.Handler(mcp.Handler())
	return g, nil
}

func (g *Gateway) authenticator() (authn.Authenticator, error) {
	if g.options.Auth == AuthNone {
		g.log.Warn("Callers are not authenticated: anyone on this machine may use every session without an owner")
		return authn.NewNone(), nil
	}
	return authn.NewTokenReview(g.client, g.options.Audience, time.Now, g.metrics.Review("token"))
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

// NewClient returns a client of the API server for exactly the kinds that the
// gateway uses, which keeps it from discovering the rest.
func NewClient(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		berthv1alpha1.AddToScheme, corev1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register API types: %w", err)
		}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(berthv1alpha1.GroupVersion.WithKind("Sandbox"), meta.RESTScopeNamespace)
	mapper.AddSpecific(berthv1alpha1.GroupVersion.WithKind("Sandbox"),
		berthv1alpha1.GroupVersion.WithResource("sandboxes"), berthv1alpha1.GroupVersion.WithResource("sandbox"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(authenticationv1.SchemeGroupVersion.WithKind("TokenReview"), meta.RESTScopeRoot)
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"), meta.RESTScopeRoot)

	config = rest.CopyConfig(config)
	// The API server's own fairness limits us. The client's limiter would make
	// the sixth new session of a second wait.
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("make API client: %w", err)
	}
	return c, nil
}
