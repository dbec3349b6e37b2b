package signingkey

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	agent "github.com/berth-dev/berth/sandbox-agent/client"
)

// ReasonSigningKeyBroken is the reason of the event on a Secret that can't be used.
const ReasonSigningKeyBroken = "SigningKeyBroken"

// Controller follows the Secret, so that an added key is used without a restart.
// It runs in every replica, leader or not.
type Controller struct {
	client    client.Client
	recorder  events.EventRecorder
	namespace string
	ring      atomic.Pointer[agent.Signer]
}

// NewController begins with the ring that Ensure has read.
func NewController(c client.Client, recorder events.EventRecorder, namespace string, initial *agent.Signer) *Controller {
	keeper := &Controller{client: c, recorder: recorder, namespace: namespace}
	keeper.ring.Store(initial)
	return keeper
}

// Name is the controller's, in logs and metrics.
func (*Controller) Name() string { return "signingkey" }

// Current is the ring in use.
func (c *Controller) Current() *agent.Signer { return c.ring.Load() }

// Reconcile takes over what the Secret holds. A ring that went missing or broken
// leaves the last good one in use, since live sessions depend on it.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	secret := &corev1.Secret{}
	if err := c.client.Get(ctx, request.NamespacedName, secret); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	} else if err != nil {
		log.FromContext(ctx).Error(err, "Signing key Secret is gone, went on with the last ring; restore it before the next restart")
		return reconcile.Result{}, nil
	}
	signer, err := parse(secret)
	if err != nil {
		c.recorder.Eventf(secret, nil, corev1.EventTypeWarning, ReasonSigningKeyBroken, "Load", "%s", err.Error())
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	if before := c.ring.Swap(signer); before.NewestKeyID() != signer.NewestKeyID() {
		log.FromContext(ctx).Info("Took a new signing key into use", "kid", signer.NewestKeyID(), "before", before.NewestKeyID())
	}
	return reconcile.Result{}, nil
}

// Register adds the controller to the manager, whose cache holds no other Secret.
func (c *Controller) Register(mgr manager.Manager) error {
	own := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetNamespace() == c.namespace && o.GetName() == SecretName
	})
	everyReplica := false
	return ctrl.NewControllerManagedBy(mgr).
		Named(c.Name()).
		For(&corev1.Secret{}, builder.WithPredicates(own)).
		WithOptions(controller.Options{NeedLeaderElection: &everyReplica}).
		Complete(c)
}
