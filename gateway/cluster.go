package gateway

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/authz"
	"github.com/berth-dev/berth/gateway/keyring"
	"github.com/berth-dev/berth/gateway/session"
)

// cluster is the backend whose sessions are Sandboxes.
func (g *Gateway) cluster(c client.WithWatch) (*backend, error) {
	authenticator, err := g.authenticator(c)
	if err != nil {
		return nil, err
	}
	ring := keyring.New(g.options.KeyNamespace, g.options.KeyName, g.log, g.agents.SetSigner)
	return &backend{
		sessions: session.NewResolver(c, g.store, session.Options{
			Create:        g.options.CreateSandboxes,
			Template:      g.options.Template,
			StartDeadline: g.options.StartDeadline,
			ReadyTimeout:  g.options.ReadyTimeout,
			Observe:       g.metrics.Resolve,
			Log:           g.log,
		}),
		authenticator: authenticator,
		authorizer:    authz.NewSubjectAccessReview(c, time.Now, g.metrics.Review("access")),
		run: func(ctx context.Context) {
			var running sync.WaitGroup
			running.Go(func() { g.store.Run(ctx, c, g.log) })
			running.Go(func() { ring.Run(ctx, c) })
			running.Wait()
		},
		serving:  func(net.Addr) {},
		waitsFor: "the signing keys and the first list of Sandboxes",
		wait: func(ctx context.Context) error {
			if err := ring.Wait(ctx); err != nil {
				return err
			}
			select {
			case <-g.store.Synced():
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	}, nil
}

func (g *Gateway) authenticator(c client.Client) (authn.Authenticator, error) {
	if g.options.Auth == AuthNone {
		g.log.Warn("Callers are not authenticated: anyone on this machine may use every session without an owner")
		return authn.NewNone(), nil
	}
	review, err := authn.NewTokenReview(c, g.options.Audience, time.Now, g.metrics.Review("token"))
	if !g.options.authenticates(AuthOIDC) {
		return review, err
	}
	options := g.options.OIDC
	options.Log = g.log
	oidc, issuerErr := authn.NewOIDC(options, time.Now)
	switch {
	case issuerErr != nil:
		return nil, issuerErr
	case !g.options.authenticates(AuthTokenReview):
		return oidc, nil
	case err != nil:
		return nil, err
	}
	return authn.Either{OIDC: oidc, Review: review}, nil
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
