package admission_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
)

func clusterRole(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

// sandboxPod makes a pod that is a Sandbox's.
func sandboxPod(ctx context.Context, namespace string) *corev1.Pod {
	GinkgoHelper()
	pod := newPod(namespace, map[string]string{
		v1alpha1.LabelSandboxUID: "uid", v1alpha1.LabelEgress: "None", v1alpha1.LabelManagedBy: v1alpha1.ManagedByBerth,
	})
	pod.Annotations = map[string]string{v1alpha1.AnnotationKeyID: "key-0001"}
	pod.Spec.InitContainers = []corev1.Container{{Name: "install", Image: "agent"}}
	Expect(admin.Create(ctx, pod)).To(Succeed())
	return pod
}

var _ = Describe("Who may create Sandboxes but not pods gets no pod of his own design", func() {
	// Everything that Berth has to grant, and no pods.
	templateWriter := func(ctx context.Context, namespace string) user {
		writer := newUserWithRole(ctx, namespace, "berth-admin")
		for _, role := range []string{"berth-edit", "berth-view"} {
			bind(ctx, namespace, writer.name, clusterRole(role), nil)
		}
		Eventually(func(g Gomega) {
			g.Expect(may(ctx, writer.name, namespace, "create", "berth.dev", "sandboxes")).To(BeTrue())
			g.Expect(may(ctx, writer.name, namespace, "get", "berth.dev", "sandboxtemplates")).To(BeTrue())
		}).WithTimeout(effective).Should(Succeed())
		return writer
	}

	It("by a template of his own", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		err := templateWriter(ctx, namespace).Create(ctx, newTemplate(namespace))
		Expect(err).To(BeForbidden())
		Expect(err).To(MatchError(ContainSubstring("may not create pods in " + namespace)))
	})

	It("by a template of his own through server-side apply", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		template := templateWith(nil)
		template.SetNamespace(namespace)
		Expect(templateWriter(ctx, namespace).Apply(ctx, client.ApplyConfigurationFromUnstructured(template), client.FieldOwner("spec"))).
			To(BeForbidden())
	})

	It("by changing a template that is there", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		template := newTemplate(namespace)
		Expect(admin.Create(ctx, template)).To(Succeed())
		writer := templateWriter(ctx, namespace)
		template.Spec.PodTemplate.Spec.Containers[0].Image = "mine"
		Expect(writer.Update(ctx, template.DeepCopy())).To(BeForbidden())
		Expect(writer.Patch(ctx, template.DeepCopy(), client.RawPatch("application/merge-patch+json",
			[]byte(`{"spec":{"network":{"egress":"Internet"}}}`)))).To(BeForbidden())
	})

	It("by deleting a template and making another of its name", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		template := newTemplate(namespace)
		Expect(admin.Create(ctx, template)).To(Succeed())
		writer := templateWriter(ctx, namespace)
		Expect(writer.Delete(ctx, template)).To(Succeed())
		Expect(writer.Create(ctx, newTemplate(namespace))).To(BeForbidden())
	})

	It("by creating pods in another namespace", func(ctx SpecContext) {
		namespace, other := newNamespace(ctx), newNamespace(ctx)
		writer := templateWriter(ctx, namespace)
		Expect(admin.Create(ctx, &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "pods"}, Rules: []rbacv1.PolicyRule{allow("create", "", "pods")},
		})).To(Succeed())
		bind(ctx, other, writer.name, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "pods"}, []rbacv1.PolicyRule{allow("create", "", "pods")})
		Expect(writer.Create(ctx, newTemplate(namespace))).To(BeForbidden())
	})

	It("by the status of his Sandbox, which says where calls go", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		sandbox := newSandbox(namespace)
		writer := templateWriter(ctx, namespace)
		Expect(writer.Create(ctx, sandbox)).To(Succeed())
		sandbox.Status.PodName = "pod-of-another"
		Expect(writer.Status().Update(ctx, sandbox)).To(BeForbidden())
	})

	It("by another image in his Sandbox's pod, if he may patch pods", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		pod := sandboxPod(ctx, namespace)
		patcher := newUser(ctx, namespace, allow("patch", "", "pods"))
		for _, patch := range []string{
			`{"spec":{"containers":[{"name":"main","image":"mine"}]}}`,
			`{"spec":{"initContainers":[{"name":"install","image":"mine"}]}}`,
		} {
			err := patcher.Patch(ctx, pod.DeepCopy(), client.RawPatch("application/strategic-merge-patch+json", []byte(patch)))
			Expect(err).To(BeForbidden(), patch)
			Expect(err).To(MatchError(ContainSubstring("come from its template")), patch)
		}
	})

	It("by a container added to his Sandbox's pod, if he may debug pods", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		pod := sandboxPod(ctx, namespace)
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "mine", Image: "mine", ImagePullPolicy: corev1.PullAlways, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		}}}
		debug := allow("update", "", "pods/ephemeralcontainers")
		err := newUser(ctx, namespace, debug).SubResource("ephemeralcontainers").Update(ctx, pod.DeepCopy())
		Expect(err).To(BeForbidden())
		Expect(err).To(MatchError(ContainSubstring("only by those who may create pods")))
		Expect(newUser(ctx, namespace, debug, allow("create", "", "pods")).SubResource("ephemeralcontainers").Update(ctx, pod)).To(Succeed())
	})

	It("by a controller that makes pods for him", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		replicaSets := newUser(ctx, namespace, allow("create", "", "pods"))
		Expect(replicaSets.Create(ctx, newPod(namespace, map[string]string{v1alpha1.LabelSandboxUID: "victim"}))).To(BeForbidden())
	})
})

var _ = Describe("Who may create pods", func() {
	It("writes templates, and changes them", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		author := newUser(ctx, namespace, allow("create", "", "pods"),
			allow("create", "berth.dev", "sandboxtemplates"), allow("update", "berth.dev", "sandboxtemplates"))
		template := newTemplate(namespace)
		Expect(author.Create(ctx, template)).To(Succeed())
		template.Spec.PodTemplate.Spec.Containers[0].Image = "other"
		Expect(author.Update(ctx, template)).To(Succeed())
	})

	It("makes and edits pods of his own as ever", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		maker := newUser(ctx, namespace, allow("create", "", "pods"), allow("update", "", "pods"))
		pod := newPod(namespace, map[string]string{"app": "web"})
		Expect(maker.Create(ctx, pod)).To(Succeed())
		pod.Labels["app"] = "other"
		pod.Spec.Containers[0].Image = "other"
		Expect(maker.Update(ctx, pod)).To(Succeed())
	})

	It("can't make one that counts as a Sandbox's, nor make it one later", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		maker := newUser(ctx, namespace, allow("create", "", "pods"), allow("update", "", "pods"))
		Expect(maker.Create(ctx, newPod(namespace, map[string]string{v1alpha1.LabelSandboxUID: "victim"}))).To(BeForbidden())
		pod := newPod(namespace, nil)
		Expect(maker.Create(ctx, pod)).To(Succeed())
		pod.Labels = map[string]string{v1alpha1.LabelSandboxUID: "victim"}
		Expect(maker.Update(ctx, pod)).To(BeForbidden())
	})

	DescribeTable("can't make a Sandbox's pod another's",
		func(ctx SpecContext, edit func(*corev1.Pod), refused bool) {
			namespace := newNamespace(ctx)
			pod := sandboxPod(ctx, namespace)
			maker := newUser(ctx, namespace, allow("create", "", "pods"), allow("update", "", "pods"))
			edit(pod)
			if refused {
				Expect(maker.Update(ctx, pod)).To(BeForbidden())
			} else {
				Expect(maker.Update(ctx, pod)).To(Succeed())
			}
		},
		Entry("by its Sandbox", func(p *corev1.Pod) { p.Labels[v1alpha1.LabelSandboxUID] = "victim" }, true),
		Entry("by taking its Sandbox away", func(p *corev1.Pod) { delete(p.Labels, v1alpha1.LabelSandboxUID) }, true),
		Entry("by its egress class", func(p *corev1.Pod) { p.Labels[v1alpha1.LabelEgress] = "Internet" }, true),
		Entry("by leaving the baseline policy", func(p *corev1.Pod) { delete(p.Labels, v1alpha1.LabelManagedBy) }, true),
		Entry("by its key", func(p *corev1.Pod) { p.Annotations[v1alpha1.AnnotationKeyID] = "key-0002" }, true),
		Entry("by its owner", func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "berth.dev/v1alpha1", Kind: "Sandbox", Name: "victim", UID: "victim"}}
		}, true),
		Entry("but labels and annotations of others are no one's business", func(p *corev1.Pod) {
			p.Labels["team"], p.Annotations["note"] = "research", "fine"
		}, false),
	)

	It("is, for a Sandbox's pods, the controller alone", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		const controller = "system:serviceaccount:berth-system:berth-controller"
		Expect(may(ctx, controller, namespace, "create", "berth.dev", "sandboxes/pod")).To(BeTrue())
		for _, other := range []string{
			"system:serviceaccount:berth-system:berth-gateway",
			newUserWithRole(ctx, namespace, "berth-edit").name, newUserWithRole(ctx, namespace, "berth-admin").name,
		} {
			Expect(may(ctx, other, namespace, "create", "berth.dev", "sandboxes/pod")).To(BeFalse(), other)
		}
	})
})

var _ = Describe("A change of a template that leaves its spec alone", func() {
	It("needs no right to create pods, so that the garbage collector works", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		template := newTemplate(namespace)
		Expect(admin.Create(ctx, template)).To(Succeed())
		template.Labels = map[string]string{"team": "research"}
		Expect(newUser(ctx, namespace, allow("update", "berth.dev", "sandboxtemplates")).Update(ctx, template)).To(Succeed())
	})
})
