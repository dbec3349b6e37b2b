package builders

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/api/v1alpha1"
)

// Image is the image of templates that MakeTemplate makes.
const Image = "registry.example/sandbox:1"

// Template builds a SandboxTemplate.
type Template struct{ object *v1alpha1.SandboxTemplate }

// MakeTemplate begins with the least that a template says: the session's image.
func MakeTemplate(name, namespace string) *Template {
	return &Template{&v1alpha1.SandboxTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: v1alpha1.SandboxTemplateSpec{PodTemplate: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: v1alpha1.SessionContainerName, Image: Image}},
		}}},
	}}
}

// Obj gives the built object.
func (b *Template) Obj() *v1alpha1.SandboxTemplate { return b.object.DeepCopy() }

// Egress sets the egress class.
func (b *Template) Egress(class v1alpha1.EgressClass) *Template {
	b.network().Egress = class
	return b
}

// EgressRule adds an egress rule of the template's own.
func (b *Template) EgressRule(rule networkingv1.NetworkPolicyEgressRule) *Template {
	b.network().EgressRules = append(b.network().EgressRules, rule)
	return b
}

func (b *Template) network() *v1alpha1.Network {
	if b.object.Spec.Network == nil {
		b.object.Spec.Network = &v1alpha1.Network{Egress: v1alpha1.EgressNone}
	}
	return b.object.Spec.Network
}

// Lifecycle sets defaults; zero leaves one out.
func (b *Template) Lifecycle(maxLifetime, startDeadline time.Duration) *Template {
	lifecycle := b.lifecycle()
	lifecycle.MaxLifetime, lifecycle.StartDeadline = nil, nil
	if maxLifetime > 0 {
		lifecycle.MaxLifetime = ptr.To(v1alpha1.Duration(maxLifetime.String()))
	}
	if startDeadline > 0 {
		lifecycle.StartDeadline = ptr.To(v1alpha1.Duration(startDeadline.String()))
	}
	return b
}

// BackgroundIsActivity makes background processes keep a session from being idle.
func (b *Template) BackgroundIsActivity() *Template {
	b.lifecycle().BackgroundIsActivity = ptr.To(true)
	return b
}

func (b *Template) lifecycle() *v1alpha1.LifecycleDefaults {
	if b.object.Spec.Lifecycle == nil {
		b.object.Spec.Lifecycle = &v1alpha1.LifecycleDefaults{}
	}
	return b.object.Spec.Lifecycle
}

// Limits sets spec.limits.
func (b *Template) Limits(limits v1alpha1.Limits) *Template {
	b.object.Spec.Limits = &limits
	return b
}

// FileRoots sets spec.files.roots.
func (b *Template) FileRoots(roots ...v1alpha1.FileRoot) *Template {
	b.object.Spec.Files = &v1alpha1.Files{Roots: roots}
	return b
}

// ArtifactStore sets spec.artifacts.store.
func (b *Template) ArtifactStore(name v1alpha1.StoreName) *Template {
	b.object.Spec.Artifacts = &v1alpha1.Artifacts{Store: name}
	return b
}

// Pod changes the pod template.
func (b *Template) Pod(change func(*corev1.PodTemplateSpec)) *Template {
	change(&b.object.Spec.PodTemplate)
	return b
}

// Session changes the session's container.
func (b *Template) Session(change func(*corev1.Container)) *Template {
	change(&b.object.Spec.PodTemplate.Spec.Containers[0])
	return b
}

// Spec changes the template's spec.
func (b *Template) Spec(change func(*v1alpha1.SandboxTemplateSpec)) *Template {
	change(&b.object.Spec)
	return b
}
