package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
)

// template is the one that the designer would change.
func (d *designer) template(ctx context.Context) *v1alpha1.SandboxTemplate {
	GinkgoHelper()
	template := &v1alpha1.SandboxTemplate{}
	Expect(d.Get(ctx, client.ObjectKey{Namespace: d.tenant.namespace, Name: v1alpha1.DefaultTemplateName}, template)).To(Succeed())
	return template
}

func (d *designer) applyTemplate(ctx context.Context, name string) error {
	return d.ApplyObject(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "SandboxTemplate",
		"metadata": map[string]any{"namespace": d.tenant.namespace, "name": name},
		"spec": map[string]any{"podTemplate": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "sandbox", "image": evil}},
		}}},
	}})
}

// sessionPod is the pod that the designer would change.
func (d *designer) sessionPod(ctx context.Context) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{}
	Expect(admin.Get(ctx, d.tenant.podOf(ctx, "live"), pod)).To(Succeed())
	return pod
}

func (d *designer) newSandbox(edit func(*v1alpha1.Sandbox)) *v1alpha1.Sandbox {
	sandbox := &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: d.tenant.namespace, Name: "designed"}}
	edit(sandbox)
	return sandbox
}

func evilPod(namespace string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "designed"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "sandbox", Image: evil}}},
	}
}

// Ways to a pod of one's own design, each of which must be refused. The word is
// part of the refusal, so that the right rule refuses.
var ways = map[string]struct {
	word string
	try  func(ctx context.Context, d *designer) error
}{
	"creating a template": {"may not create pods", func(ctx context.Context, d *designer) error {
		return d.Create(ctx, newTemplate(d.tenant.namespace, "evil", withImage(evil)))
	}},
	"updating a template": {"may not create pods", func(ctx context.Context, d *designer) error {
		template := d.template(ctx)
		withImage(evil)(template)
		return d.Update(ctx, template)
	}},
	"patching a template": {"may not create pods", func(ctx context.Context, d *designer) error {
		template := d.template(ctx)
		before := template.DeepCopy()
		withImage(evil)(template)
		return d.Patch(ctx, template, client.MergeFrom(before))
	}},
	"patching a template's image by JSON patch": {"may not create pods", func(ctx context.Context, d *designer) error {
		patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/podTemplate/spec/containers/0/image","value":%q}]`, evil)
		return d.Patch(ctx, d.template(ctx), client.RawPatch(types.JSONPatchType, []byte(patch)))
	}},
	"opening a template's network": {"may not create pods", func(ctx context.Context, d *designer) error {
		template := d.template(ctx)
		withNetwork(v1alpha1.Network{Egress: v1alpha1.EgressInternet})(template)
		return d.Update(ctx, template)
	}},
	"applying over a template": {"may not create pods", func(ctx context.Context, d *designer) error {
		return d.applyTemplate(ctx, v1alpha1.DefaultTemplateName)
	}},
	"applying a new template": {"may not create pods", func(ctx context.Context, d *designer) error {
		return d.applyTemplate(ctx, "evil")
	}},
	"replacing a template by deleting it first": {"may not create pods", func(ctx context.Context, d *designer) error {
		if err := d.Delete(ctx, d.template(ctx)); err != nil {
			return err
		}
		return d.Create(ctx, newTemplate(d.tenant.namespace, v1alpha1.DefaultTemplateName, withImage(evil)))
	}},
	"a pod template inside a Sandbox": {"unknown field", func(ctx context.Context, d *designer) error {
		sandbox := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Sandbox",
			"metadata": map[string]any{"namespace": d.tenant.namespace, "name": "designed"},
			"spec":     map[string]any{"podTemplate": map[string]any{"spec": map[string]any{}}},
		}}
		return client.WithFieldValidation(d, metav1.FieldValidationStrict).Create(ctx, sandbox)
	}},
	"a Sandbox of another namespace's template": {"DNS-1123", func(ctx context.Context, d *designer) error {
		return d.Create(ctx, d.newSandbox(func(s *v1alpha1.Sandbox) { s.Spec.TemplateRef.Name = "elsewhere/evil" }))
	}},
	"a Sandbox in another's name": {"spec.owner must be", func(ctx context.Context, d *designer) error {
		return d.Create(ctx, d.newSandbox(func(s *v1alpha1.Sandbox) { s.Spec.Owner = "system:serviceaccount:" + d.tenant.namespace + ":caller" }))
	}},
	"taking over a live Sandbox": {"owner is immutable", func(ctx context.Context, d *designer) error {
		sandbox := d.tenant.sandbox(ctx, "live")
		before := sandbox.DeepCopy()
		sandbox.Spec.Owner = "someone-else"
		return d.Patch(ctx, sandbox, client.MergeFrom(before))
	}},
	"moving a live Sandbox to another template": {"templateRef is immutable", func(ctx context.Context, d *designer) error {
		sandbox := d.tenant.sandbox(ctx, "live")
		before := sandbox.DeepCopy()
		sandbox.Spec.TemplateRef.Name = "evil"
		return d.Patch(ctx, sandbox, client.MergeFrom(before))
	}},
	"an agent's variables in a Sandbox": {"BERTH_", func(ctx context.Context, d *designer) error {
		return d.Create(ctx, d.newSandbox(func(s *v1alpha1.Sandbox) {
			s.Spec.Env = []v1alpha1.EnvVar{{Name: "BERTH_PUBLIC_KEYS", Value: ptr.To("{}")}}
		}))
	}},
	"a status that routes to another pod": {"sandboxes/status", func(ctx context.Context, d *designer) error {
		sandbox := d.tenant.sandbox(ctx, "live")
		before := sandbox.DeepCopy()
		sandbox.Status.PodUID, sandbox.Status.PodIP = "victim", "10.0.0.1"
		return d.Status().Patch(ctx, sandbox, client.MergeFrom(before))
	}},
	"creating a pod": {"cannot create resource", func(ctx context.Context, d *designer) error {
		return d.Create(ctx, evilPod(d.tenant.namespace))
	}},
	"an ephemeral container in a session's pod": {"pods/ephemeralcontainers", func(ctx context.Context, d *designer) error {
		pod := d.sessionPod(ctx)
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "evil", Image: evil, SecurityContext: restricted(),
		}}}
		return d.SubResource("ephemeralcontainers").Update(ctx, pod)
	}},
	"kubectl exec in a session's pod": {"pods/exec", func(ctx context.Context, d *designer) error {
		_, err := d.Exec(ctx, client.ObjectKeyFromObject(d.sessionPod(ctx)), v1alpha1.SessionContainerName, "true")
		return err
	}},
}

// Ways of one who may change pods, too, but not create any.
var podWays = map[string]struct {
	word string
	edit func(*corev1.Pod)
}{
	"the image of a session's pod":   {"images of a Sandbox's pod", func(p *corev1.Pod) { p.Spec.Containers[0].Image = evil }},
	"the egress label of such a pod": {"labels and annotations", func(p *corev1.Pod) { p.Labels[v1alpha1.LabelEgress] = string(v1alpha1.EgressInternet) }},
	"the baseline's label of it":     {"labels and annotations", func(p *corev1.Pod) { delete(p.Labels, v1alpha1.LabelComponent) }},
	"the label of whose pod it is":   {"labels and annotations", func(p *corev1.Pod) { p.Labels[v1alpha1.LabelSandboxUID] = "another" }},
	"its owner":                      {"owner of a Sandbox's pod", func(p *corev1.Pod) { p.OwnerReferences = nil }},
	"the annotation of its key":      {"labels and annotations", func(p *corev1.Pod) { p.Annotations[v1alpha1.AnnotationKeyID] = "another" }},
}
