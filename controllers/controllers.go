// Package controllers wires the controllers of Berth into a manager.
package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers/networkpolicy"
	"github.com/berth-dev/berth/controllers/sandbox"
	"github.com/berth-dev/berth/controllers/sandbox/pod"
	"github.com/berth-dev/berth/controllers/sandboxtemplate"
	"github.com/berth-dev/berth/controllers/signingkey"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create,namespace=berth-system
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;update;patch,resourceNames=berth-controller,namespace=berth-system

// Leader election tells of itself by events of the old API.
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch,namespace=berth-system

// Options are what the controllers need to know of the installation.
type Options struct {
	// Namespace is the controller's own, which holds the signing key.
	Namespace string
	Pod       pod.Options
	Network   networkpolicy.Options
}

// Scheme knows the kinds of Kubernetes and of Berth.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return scheme, v1alpha1.AddToScheme(scheme)
}

// reconciliationTimeout ends a reconcile that waits for a cache which never shows
// its own write.
const reconciliationTimeout = 30 * time.Second

// Configure adds to the manager's options what the controllers rely on: a cache
// that holds little, and a client that reads its own writes.
func Configure(options manager.Options, namespace string) manager.Options {
	byObject := sandbox.CacheByObject()
	byObject[&corev1.Secret{}] = cache.ByObject{
		Namespaces: map[string]cache.Config{namespace: {}},
		Field:      fields.OneTermEqualSelector("metadata.name", signingkey.SecretName),
	}
	options.Cache.ByObject = byObject
	options.Cache.DefaultTransform = cache.TransformStripManagedFields()
	options.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}
	options.Controller = config.Controller{ReconciliationTimeout: reconciliationTimeout}
	return options
}

// Unthrottled takes client-go's own rate limiter off: five requests a second
// would be Berth's ceiling, and the API server's priority and fairness is there.
func Unthrottled(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return config
}

// Register makes sure of the signing key and adds all controllers to the manager.
func Register(ctx context.Context, mgr manager.Manager, options Options) error {
	direct, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("uncached client: %w", err)
	}
	ring, err := signingkey.Ensure(ctx, direct, options.Namespace)
	if err != nil {
		return err
	}

	recorder := mgr.GetEventRecorder("berth-controller")
	keys := signingkey.NewController(mgr.GetClient(), recorder, options.Namespace, ring)
	keeper := networkpolicy.NewKeeper(mgr.GetClient(), options.Network)
	policies := networkpolicy.NewController(mgr.GetClient(), keeper)
	templates := sandboxtemplate.NewController(mgr.GetClient(), clock.RealClock{}, recorder, keeper, options.Pod)
	sandboxes := sandbox.NewController(sandbox.Dependencies{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{},
		Recorder: recorder, Policies: keeper, Keys: keys,
	}, options.Pod)

	for _, register := range []func(manager.Manager) error{
		keys.Register, policies.Register, templates.Register,
		func(mgr manager.Manager) error { return sandboxes.Register(ctx, mgr) },
	} {
		if err := register(mgr); err != nil {
			return err
		}
	}
	return nil
}
