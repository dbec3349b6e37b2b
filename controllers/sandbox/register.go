package sandbox

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/berth-dev/berth/api/v1alpha1"
)

const (
	// IndexOwner finds pods by the UID of the Sandbox that controls them.
	IndexOwner = "berth.dev/owner-uid"
	// IndexTemplate finds Sandboxes by the name of their template.
	IndexTemplate = "spec.templateRef.name"
)

// After an error, the queue waits between these. The default maximum of 16 minutes
// would leave sessions waiting long after the API server is back.
const (
	minErrorWait = 5 * time.Millisecond
	maxErrorWait = 30 * time.Second
)

// maxConcurrent reconciles wait for the API server most of their time.
const maxConcurrent = 16

// Register adds the controller and its indexes to the manager.
func (c *Controller) Register(ctx context.Context, mgr manager.Manager) error {
	indexer := mgr.GetFieldIndexer()
	if err := indexer.IndexField(ctx, &corev1.Pod{}, IndexOwner, ownerIndex); err != nil {
		return fmt.Errorf("index pods by owner: %w", err)
	}
	if err := indexer.IndexField(ctx, &v1alpha1.Sandbox{}, IndexTemplate, templateIndex); err != nil {
		return fmt.Errorf("index sandboxes by template: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(c.Name()).
		For(&v1alpha1.Sandbox{}, builder.WithPredicates(specOrDeletion())).
		Owns(&corev1.Pod{}, builder.WithPredicates(podChanged())).
		Watches(&v1alpha1.SandboxTemplate{}, handler.EnqueueRequestsFromMapFunc(c.waitingFor),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: maxConcurrent,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minErrorWait, maxErrorWait),
		}).
		Complete(c)
}

func ownerIndex(o client.Object) []string {
	if owner := OwnerOf(o); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

func templateIndex(o client.Object) []string {
	return []string{o.(*v1alpha1.Sandbox).Spec.TemplateRef.Name}
}

// OwnerOf gives the reference to the Sandbox that controls the object, or nil.
func OwnerOf(o client.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || owner.Kind != "Sandbox" || owner.APIVersion != v1alpha1.GroupVersion.String() {
		return nil
	}
	return owner
}

// waitingFor are the sandboxes of a template that have no pod. Those that have one
// are not disturbed, and not even looked at.
func (c *Controller) waitingFor(ctx context.Context, template client.Object) []reconcile.Request {
	sandboxes := &v1alpha1.SandboxList{}
	err := c.client.List(ctx, sandboxes, client.InNamespace(template.GetNamespace()),
		client.MatchingFields{IndexTemplate: template.GetName()}, client.DisableReadYourWritesConsistency)
	if err != nil {
		log.FromContext(ctx).Error(err, "Listing the sandboxes of a template failed", "template", template.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range sandboxes.Items {
		if !recorded(&sandboxes.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&sandboxes.Items[i])})
		}
	}
	return requests
}

// specOrDeletion drops our own status writes.
func specOrDeletion() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
		},
	})
}

// podChanged lets only those updates of a pod through that the pure code reads.
func podChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Pod)
		if !ok {
			return true
		}
		after, ok := e.ObjectNew.(*corev1.Pod)
		return !ok || !equality.Semantic.DeepEqual(viewOf(before), viewOf(after))
	}}
}

// podView is what planning and status read of a pod.
type podView struct {
	Owner       *metav1.OwnerReference
	SandboxUID  string
	Terminating bool
	NodeName    string
	Phase       corev1.PodPhase
	Reason      string
	Message     string
	PodIP       string
	Conditions  []conditionView
	Containers  []containerView
}

type conditionView struct {
	Type            corev1.PodConditionType
	Status          corev1.ConditionStatus
	Reason, Message string
}

type containerView struct {
	Name        string
	Ready       bool
	State, Last corev1.ContainerState
}

func viewOf(p *corev1.Pod) podView {
	view := podView{
		Owner: OwnerOf(p), SandboxUID: p.Labels[v1alpha1.LabelSandboxUID],
		Terminating: !p.DeletionTimestamp.IsZero(), NodeName: p.Spec.NodeName,
		Phase: p.Status.Phase, Reason: p.Status.Reason, Message: p.Status.Message, PodIP: p.Status.PodIP,
	}
	for _, condition := range p.Status.Conditions {
		view.Conditions = append(view.Conditions, conditionView{condition.Type, condition.Status, condition.Reason, condition.Message})
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			view.Containers = append(view.Containers, containerView{list[i].Name, list[i].Ready, list[i].State, list[i].LastTerminationState})
		}
	}
	return view
}
