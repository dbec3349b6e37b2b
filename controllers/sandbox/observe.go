package sandbox

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers/sandbox/pod"
)

// Observation is all that a reconcile knows. It is read only.
type Observation struct {
	Now     time.Time
	Sandbox *v1alpha1.Sandbox
	// Template is nil if there is none of that name.
	Template *v1alpha1.SandboxTemplate
	// TemplateErrors say why no pod can be made from the template.
	TemplateErrors field.ErrorList
	// Pod is this sandbox's pod of the current generation, or nil.
	Pod *corev1.Pod
	// Foreign: a pod that is not this sandbox's has the name of its pod.
	Foreign bool
	// Strays are this sandbox's other pods that are not on their way out.
	Strays []corev1.Pod
	// Policies must be applied before a pod is created.
	Policies []*networkingv1.NetworkPolicy
	Keys     pod.Keys
	Options  pod.Options
}

// generation is the one that the next or present pod has.
func generation(sandbox *v1alpha1.Sandbox) int64 {
	return ptr.Deref(sandbox.Status.PodGeneration, 1)
}

// recorded tells whether status names a pod.
func recorded(sandbox *v1alpha1.Sandbox) bool { return sandbox.Status.PodUID != "" }

// observe reads the sandbox and what belongs to it; nil if it is gone. It reads
// caches, and the API server where a cache that lags could mislead the plan.
func (c *Controller) observe(ctx context.Context, key client.ObjectKey) (*Observation, error) {
	seen := &Observation{Now: c.clock.Now(), Sandbox: &v1alpha1.Sandbox{}, Options: c.options}
	if err := c.client.Get(ctx, key, seen.Sandbox); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if err := c.observePods(ctx, seen, c.client, client.MatchingFields{IndexOwner: string(seen.Sandbox.UID)}, client.DisableReadYourWritesConsistency); err != nil {
		return nil, err
	}
	if c.mustReadLive(seen) {
		if gone, err := c.observeLive(ctx, seen, key); gone || err != nil {
			return nil, err
		}
	}
	return seen, c.observeSurroundings(ctx, seen)
}

// mustReadLive tells whether the plan would act on what a lagging cache can get wrong.
func (c *Controller) mustReadLive(seen *Observation) bool {
	sandbox := seen.Sandbox
	if !sandbox.DeletionTimestamp.IsZero() {
		return false
	}
	if _, unknown := c.uncertain.Load(client.ObjectKeyFromObject(sandbox)); unknown {
		return true
	}
	if len(seen.Strays) > 0 || seen.Foreign {
		return true
	}
	if seen.Pod != nil {
		return false
	}
	return recorded(sandbox) || c.olderThanLeadership(sandbox)
}

// olderThanLeadership tells whether an earlier leader may have acted on the
// sandbox. The margin covers clocks that disagree.
func (c *Controller) olderThanLeadership(sandbox *v1alpha1.Sandbox) bool {
	const skew = 30 * time.Second
	return sandbox.CreationTimestamp.Time.Before(c.leaderSince().Add(skew))
}

func (c *Controller) observeLive(ctx context.Context, seen *Observation, key client.ObjectKey) (gone bool, err error) {
	live := &v1alpha1.Sandbox{}
	if err := c.live.Get(ctx, key, live); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	seen.Sandbox = live
	if err := c.observePods(ctx, seen, c.live, client.MatchingLabels{v1alpha1.LabelSandboxUID: string(live.UID)}); err != nil {
		return false, err
	}
	c.uncertain.Delete(key)
	return false, nil
}

// observePods reads the pod of the current generation by its name, which waits
// for this process's own writes to it, and lists the others, which must not wait
// for all writes in flight.
func (c *Controller) observePods(ctx context.Context, seen *Observation, reader client.Reader, mine ...client.ListOption) error {
	sandbox := seen.Sandbox
	seen.Pod, seen.Foreign, seen.Strays = nil, false, nil
	name := pod.Name(sandbox.Name, sandbox.UID, generation(sandbox))
	found := &corev1.Pod{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: sandbox.Namespace, Name: name}, found)
	switch {
	case err == nil && isOwn(found, sandbox):
		seen.Pod = found
	case err == nil:
		seen.Foreign = true
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read pod %s/%s: %w", sandbox.Namespace, name, err)
	}

	pods := &corev1.PodList{}
	if err := reader.List(ctx, pods, append(mine, client.InNamespace(sandbox.Namespace))...); err != nil {
		return fmt.Errorf("list pods of sandbox %s/%s: %w", sandbox.Namespace, sandbox.Name, err)
	}
	for i := range pods.Items {
		other := &pods.Items[i]
		if other.Name != name && other.DeletionTimestamp.IsZero() && isOwn(other, sandbox) {
			seen.Strays = append(seen.Strays, *other)
		}
	}
	return nil
}

// isOwn tells whether the pod was made for this sandbox. Its owner alone does not:
// whoever may create pods can name any. Only the controller can give a pod the
// label (config/admission/sandbox-pods.yaml).
func isOwn(p *corev1.Pod, sandbox *v1alpha1.Sandbox) bool {
	return metav1.IsControlledBy(p, sandbox) && p.Labels[v1alpha1.LabelSandboxUID] == string(sandbox.UID)
}

// observeSurroundings reads the template, and what a new pod needs if one is due.
func (c *Controller) observeSurroundings(ctx context.Context, seen *Observation) error {
	sandbox := seen.Sandbox
	template := &v1alpha1.SandboxTemplate{}
	key := client.ObjectKey{Namespace: sandbox.Namespace, Name: sandbox.Spec.TemplateRef.Name}
	if err := c.client.Get(ctx, key, template); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read template %s: %w", key, err)
	}
	seen.Template = template
	if seen.Pod != nil || recorded(sandbox) || sandbox.Spec.OperatingMode == v1alpha1.OperatingModeSuspended {
		return nil
	}
	if seen.TemplateErrors = pod.Validate(template, c.options); len(seen.TemplateErrors) > 0 {
		return nil
	}
	ring := c.keys.Current()
	public, err := ring.PublicKeys()
	if err != nil {
		return fmt.Errorf("public keys of the signing key ring: %w", err)
	}
	seen.Keys = pod.Keys{NewestID: ring.NewestKeyID(), PublicJWKS: public}
	seen.Policies, err = c.policies.Missing(ctx, sandbox.Namespace, pod.Egress(template))
	return err
}
