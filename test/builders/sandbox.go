// Package builders makes objects for tests: MakeSandbox(name, namespace).Owner(o).Obj().
package builders

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/api/v1alpha1"
)

// Sandbox builds a Sandbox.
type Sandbox struct{ object *v1alpha1.Sandbox }

// MakeSandbox begins with what the API server makes of an empty spec.
func MakeSandbox(name, namespace string) *Sandbox {
	return &Sandbox{&v1alpha1.Sandbox{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: v1alpha1.SandboxSpec{
			TemplateRef:   v1alpha1.TemplateReference{Name: v1alpha1.DefaultTemplateName},
			OperatingMode: v1alpha1.OperatingModeRunning,
		},
	}}
}

// Obj gives the built object.
func (b *Sandbox) Obj() *v1alpha1.Sandbox { return b.object.DeepCopy() }

// Stored adds what an API server would: UID, generation 1, creation time, and the
// status before the first reconcile.
func (b *Sandbox) Stored(uid types.UID, createdAt time.Time) *Sandbox {
	b.object.UID = uid
	b.object.Generation = 1
	b.object.ResourceVersion = "1"
	b.object.CreationTimestamp = metav1.NewTime(createdAt)
	b.object.Status.ObservedGeneration = ptr.To[int64](-1)
	return b
}

// Generation sets metadata.generation.
func (b *Sandbox) Generation(generation int64) *Sandbox {
	b.object.Generation = generation
	return b
}

// Owner sets spec.owner.
func (b *Sandbox) Owner(owner string) *Sandbox {
	b.object.Spec.Owner = owner
	return b
}

// Suspended asks for no pod.
func (b *Sandbox) Suspended() *Sandbox {
	b.object.Spec.OperatingMode = v1alpha1.OperatingModeSuspended
	return b
}

// Running asks for a pod again.
func (b *Sandbox) Running() *Sandbox {
	b.object.Spec.OperatingMode = v1alpha1.OperatingModeRunning
	return b
}

// MaxLifetime sets spec.maxLifetime.
func (b *Sandbox) MaxLifetime(d time.Duration) *Sandbox {
	b.object.Spec.MaxLifetime = ptr.To(v1alpha1.Duration(d.String()))
	return b
}

// StartDeadline sets spec.startDeadline.
func (b *Sandbox) StartDeadline(d time.Duration) *Sandbox {
	b.object.Spec.StartDeadline = ptr.To(v1alpha1.Duration(d.String()))
	return b
}

// Env adds a variable to spec.env.
func (b *Sandbox) Env(name, value string) *Sandbox {
	b.object.Spec.Env = append(b.object.Spec.Env, v1alpha1.EnvVar{Name: name, Value: &value})
	return b
}

// Limit sets one of spec.resources.limits.
func (b *Sandbox) Limit(name corev1.ResourceName, quantity string) *Sandbox {
	if b.object.Spec.Resources == nil {
		b.object.Spec.Resources = &v1alpha1.Resources{}
	}
	if b.object.Spec.Resources.Limits == nil {
		b.object.Spec.Resources.Limits = corev1.ResourceList{}
	}
	b.object.Spec.Resources.Limits[name] = resource.MustParse(quantity)
	return b
}

// Deleting sets the deletion timestamp.
func (b *Sandbox) Deleting(at time.Time) *Sandbox {
	b.object.DeletionTimestamp = ptr.To(metav1.NewTime(at))
	return b
}

// Status replaces the status.
func (b *Sandbox) Status(status v1alpha1.SandboxStatus) *Sandbox {
	b.object.Status = status
	return b
}
