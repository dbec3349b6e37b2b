package networkpolicy

import (
	"context"
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers/sandbox/pod"
)

// Controller keeps the policies of each namespace that has a template, so that
// they are there before its first pod, and repairs what others change.
type Controller struct {
	client client.Client
	keeper *Keeper
}

// NewController gives the controller of the keeper's policies.
func NewController(c client.Client, keeper *Keeper) *Controller {
	return &Controller{client: c, keeper: keeper}
}

// Name is the controller's, in logs and metrics.
func (*Controller) Name() string { return "networkpolicy" }

// Reconcile brings the policies of one namespace (the request's name) up to date.
// It takes none away: a policy of a class that no template names any more may
// have pods that were born with it, and without pods it selects nothing.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	namespace := request.Name
	templates := &v1alpha1.SandboxTemplateList{}
	if err := c.client.List(ctx, templates, client.InNamespace(namespace), client.DisableReadYourWritesConsistency); err != nil {
		return reconcile.Result{}, fmt.Errorf("list templates of namespace %s: %w", namespace, err)
	}
	classes, err := c.storedClasses(ctx, namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	for i := range templates.Items {
		classes = append(classes, pod.Egress(&templates.Items[i]))
	}
	inUse, err := c.hasSandboxes(ctx, namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	if inUse {
		classes = append(classes, v1alpha1.EgressNone)
	}
	slices.Sort(classes)
	for _, class := range slices.Compact(classes) {
		missing, err := c.keeper.Missing(ctx, namespace, class)
		if err != nil {
			return reconcile.Result{}, err
		}
		for _, policy := range missing {
			if err := c.keeper.Apply(ctx, policy); err != nil {
				return reconcile.Result{}, err
			}
		}
	}
	return reconcile.Result{}, nil
}

// classOf maps the names of the policies that are kept to their classes.
var classOf = map[string]v1alpha1.EgressClass{
	BaselineName:                         v1alpha1.EgressNone,
	className(v1alpha1.EgressClusterDNS): v1alpha1.EgressClusterDNS,
	className(v1alpha1.EgressInternet):   v1alpha1.EgressInternet,
}

// storedClasses are the classes whose policies are there, and None if the
// baseline is: pods may rely on them even when no template does.
func (c *Controller) storedClasses(ctx context.Context, namespace string) ([]v1alpha1.EgressClass, error) {
	stored := &networkingv1.NetworkPolicyList{}
	if err := c.client.List(ctx, stored, client.InNamespace(namespace), client.DisableReadYourWritesConsistency); err != nil {
		return nil, fmt.Errorf("list policies of namespace %s: %w", namespace, err)
	}
	var classes []v1alpha1.EgressClass
	for i := range stored.Items {
		if class, ours := classOf[stored.Items[i].Name]; ours {
			classes = append(classes, class)
		}
	}
	return classes, nil
}

// hasSandboxes tells whether the namespace may have session pods, template or not:
// then its baseline comes back when somebody deletes it.
func (c *Controller) hasSandboxes(ctx context.Context, namespace string) (bool, error) {
	sandboxes := &v1alpha1.SandboxList{}
	if err := c.client.List(ctx, sandboxes, client.InNamespace(namespace), client.Limit(1), client.DisableReadYourWritesConsistency); err != nil {
		return false, fmt.Errorf("list sandboxes of namespace %s: %w", namespace, err)
	}
	return len(sandboxes.Items) > 0, nil
}

// Register adds the controller to the manager.
func (c *Controller) Register(mgr manager.Manager) error {
	toNamespace := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.GetNamespace()}}}
	})
	kept := func(o client.Object) bool {
		_, ours := classOf[o.GetName()]
		return ours
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(c.Name()).
		Watches(&v1alpha1.SandboxTemplate{}, toNamespace, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&networkingv1.NetworkPolicy{}, toNamespace, builder.WithPredicates(
			predicate.NewPredicateFuncs(kept), predicate.ResourceVersionChangedPredicate{})).
		Complete(c)
}
