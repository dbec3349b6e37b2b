// Package sandboxtemplate tells whether sandboxes can be made from a template,
// and keeps the network policy of its own egress rules.
package sandboxtemplate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers/networkpolicy"
	"github.com/berth-dev/berth/controllers/sandbox/pod"
	"github.com/berth-dev/berth/controllers/status"
)

// +kubebuilder:rbac:groups=berth.dev,resources=sandboxtemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups=berth.dev,resources=sandboxtemplates/status,verbs=patch
// +kubebuilder:rbac:groups=berth.dev,resources=sandboxtemplates/finalizers,verbs=update

// Controller reconciles SandboxTemplates.
type Controller struct {
	client   client.Client
	clock    clock.PassiveClock
	recorder events.EventRecorder
	keeper   *networkpolicy.Keeper
	options  pod.Options
}

// NewController gives the controller of SandboxTemplates.
func NewController(c client.Client, clk clock.PassiveClock, recorder events.EventRecorder, keeper *networkpolicy.Keeper, options pod.Options) *Controller {
	return &Controller{client: c, clock: clk, recorder: recorder, keeper: keeper, options: options}
}

// Name is the controller's, in logs and metrics.
func (*Controller) Name() string { return "sandboxtemplate" }

// Reconcile validates one template, keeps its policy and writes its status.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	template := &v1alpha1.SandboxTemplate{}
	if err := c.client.Get(ctx, request.NamespacedName, template); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !template.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil // its policy goes with it
	}
	refused := c.keepPolicy(ctx, template)
	if refused != nil && !apierrors.IsInvalid(refused) {
		return reconcile.Result{}, refused
	}

	after := template.DeepCopy()
	after.Status.ObservedGeneration = ptr.To(template.Generation)
	after.Status.Conditions = status.Conditions(template.Status.Conditions, c.desired(template, refused), template.Generation, c.clock.Now())
	wrote, err := status.Patch(ctx, c.client, template, after)
	if err != nil {
		// A conflict is tried again: the write in between may be one that the
		// predicate drops.
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	ready := status.Find(after.Status.Conditions, v1alpha1.ConditionReady)
	if was := status.Find(template.Status.Conditions, v1alpha1.ConditionReady); wrote && (was == nil || was.Reason != ready.Reason) {
		c.tell(after, ready)
	}
	return reconcile.Result{}, nil
}

// desired are the conditions of a template of whose own egress rules the API server
// said so; nil if it took them.
func (c *Controller) desired(template *v1alpha1.SandboxTemplate, refused error) []metav1.Condition {
	errs := pod.Validate(template, c.options)
	if refused != nil {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "network", "egressRules"), refused.Error()))
	}
	if len(errs) == 0 {
		return []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonAccepted, Message: "sandboxes can be made from this template",
		}}
	}
	message := errs.ToAggregate().Error()
	return []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTemplateInvalid, Message: message},
		{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonTemplateInvalid, Message: message},
	}
}

func (c *Controller) tell(template *v1alpha1.SandboxTemplate, ready *metav1.Condition) {
	eventType := corev1.EventTypeNormal
	if ready.Status != metav1.ConditionTrue {
		eventType = corev1.EventTypeWarning
	}
	const maxNote = 1024 // the API's bound, in bytes
	c.recorder.Eventf(template, nil, eventType, ready.Reason, "Validate", "%s", status.Clip(ready.Message, maxNote))
}

// keepPolicy has the policy of the template's own rules in place, and takes it
// away with the last rule.
func (c *Controller) keepPolicy(ctx context.Context, template *v1alpha1.SandboxTemplate) error {
	wanted := networkpolicy.ForTemplate(template)
	if len(wanted.Spec.Egress) > 0 {
		current, err := c.keeper.Current(ctx, wanted)
		if err != nil || current {
			return err
		}
		return c.keeper.Apply(ctx, wanted)
	}
	stored := &networkingv1.NetworkPolicy{}
	err := c.client.Get(ctx, client.ObjectKeyFromObject(wanted), stored)
	if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(stored, template) {
		return nil
	}
	if err == nil {
		err = c.client.Delete(ctx, stored, client.Preconditions{UID: &stored.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete NetworkPolicy %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	return nil
}

// Register adds the controller to the manager.
func (c *Controller) Register(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(c.Name()).
		For(&v1alpha1.SandboxTemplate{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&networkingv1.NetworkPolicy{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Complete(c)
}
