package sandbox

import (
	"context"
	"errors"
	"sync"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers/sandbox/pod"
	"github.com/berth-dev/berth/controllers/status"
	agent "github.com/berth-dev/berth/sandbox-agent/client"
)

// +kubebuilder:rbac:groups=berth.dev,resources=sandboxes,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=berth.dev,resources=sandboxes/status,verbs=patch
// +kubebuilder:rbac:groups=berth.dev,resources=sandboxes/finalizers,verbs=update
// +kubebuilder:rbac:groups=berth.dev,resources=sandboxtemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Policies puts network policies in place before a pod is created.
type Policies interface {
	Missing(ctx context.Context, namespace string, class v1alpha1.EgressClass) ([]*networkingv1.NetworkPolicy, error)
	Apply(ctx context.Context, policy *networkingv1.NetworkPolicy) error
}

// Keys gives the ring of signing keys in use.
type Keys interface {
	Current() *agent.Signer
}

// Controller reconciles Sandboxes.
type Controller struct {
	client   client.Client
	live     client.Reader
	clock    clock.PassiveClock
	recorder events.EventRecorder
	policies Policies
	keys     Keys
	options  pod.Options

	// uncertain holds the key of each sandbox that a write of unknown outcome was
	// made for, until it was read live.
	uncertain sync.Map
	// leading is set at the first reconcile, which only a leader runs.
	leading     sync.Once
	leadingFrom time.Time
}

// Dependencies are what a Controller works with.
type Dependencies struct {
	// Client reads from the cache, after this process's own writes to what is read.
	Client client.Client
	// Live reads from the API server.
	Live     client.Reader
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	Policies Policies
	Keys     Keys
}

// NewController gives the controller of Sandboxes.
func NewController(with Dependencies, options pod.Options) *Controller {
	return &Controller{
		client: with.Client, live: with.Live, clock: with.Clock, recorder: with.Recorder,
		policies: with.Policies, keys: with.Keys, options: options,
	}
}

// Name is the controller's, in logs and metrics.
func (*Controller) Name() string { return "sandbox" }

func (c *Controller) leaderSince() time.Time {
	c.leading.Do(func() { c.leadingFrom = c.clock.Now() })
	return c.leadingFrom
}

// Reconcile brings one Sandbox a step further.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	c.leaderSince()

	// 1. Observe: the only reads.
	seen, err := c.observe(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if seen == nil {
		c.uncertain.Delete(request.NamespacedName)
		return reconcile.Result{}, nil
	}

	// 2. Plan, and act on it.
	plan := Decide(seen)
	done, err := c.act(ctx, seen.Sandbox, plan.Steps)
	if err != nil {
		return c.again(request, err)
	}
	if done.Deleted {
		countExpired(seen)
		log.FromContext(ctx).Info("Deleted an expired sandbox", "reason", plan.Cause.Message)
		return reconcile.Result{}, nil
	}

	// 3. Status, in one guarded patch.
	computed := Compute(seen, plan, done)
	after := seen.Sandbox.DeepCopy()
	after.Status = computed.Status
	wrote, err := status.Patch(ctx, c.client, seen.Sandbox, after)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil // deleted meanwhile; its pod goes with it
	}
	if err != nil {
		return c.again(request, err)
	}

	// 4. Tell, now that it is true.
	if wrote {
		c.tell(ctx, seen, computed.Status)
	}
	return reconcile.Result{RequeueAfter: c.until(computed.WakeAt)}, nil
}

// again decides how a failed write is tried again: at once and from the API
// server's truth if only the picture was out of date; else after the queue's
// back-off, and live too if nobody knows whether it was written.
func (c *Controller) again(request reconcile.Request, err error) (reconcile.Result, error) {
	switch {
	case errors.Is(err, errSeenStale), apierrors.IsConflict(err):
		c.uncertain.Store(request.NamespacedName, struct{}{})
		return reconcile.Result{RequeueAfter: atOnce}, nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return reconcile.Result{}, err
	default:
		c.uncertain.Store(request.NamespacedName, struct{}{})
		return reconcile.Result{}, err
	}
}

// atOnce is the shortest RequeueAfter; zero would mean never.
const atOnce = time.Nanosecond

func (c *Controller) until(wakeAt time.Time) time.Duration {
	if wakeAt.IsZero() {
		return 0
	}
	return max(wakeAt.Sub(c.clock.Now()), atOnce)
}
