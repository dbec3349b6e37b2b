package controllers_test

import (
	"context"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/builders"
	"github.com/berth-dev/berth/test/invariants"
)

var _ = Describe("A SandboxTemplate", func() {
	var h *harness
	BeforeEach(func(ctx SpecContext) { h = bareHarness(ctx, newNamespace(ctx), interceptor.Funcs{}) })

	reconcileTemplate := func(ctx context.Context) *v1alpha1.SandboxTemplate {
		GinkgoHelper()
		key := client.ObjectKey{Namespace: h.namespace, Name: "default"}
		_, err := h.templates.Reconcile(ctx, reconcile.Request{NamespacedName: key})
		Expect(err).NotTo(HaveOccurred())
		template := &v1alpha1.SandboxTemplate{}
		Expect(admin.Get(ctx, key, template)).To(Succeed())
		Expect(invariants.CheckTemplate(template)).To(Succeed())
		return template
	}

	It("is Accepted, and written once", func(ctx SpecContext) {
		Expect(admin.Create(ctx, builders.MakeTemplate("default", h.namespace).Obj())).To(Succeed())
		template := reconcileTemplate(ctx)
		Expect(template).To(BeReady())
		Expect(reconcileTemplate(ctx).ResourceVersion).To(Equal(template.ResourceVersion))
	})

	It("says which field makes it invalid, until that is mended", func(ctx SpecContext) {
		Expect(admin.Create(ctx, builders.MakeTemplate("default", h.namespace).Session(func(c *corev1.Container) { c.Command = []string{"sh"} }).Obj())).To(Succeed())
		template := reconcileTemplate(ctx)
		Expect(template).To(BeUnready(v1alpha1.ReasonTemplateInvalid))
		Expect(template).To(HaveTrue(v1alpha1.ConditionStalled))
		Expect(message(template)).To(ContainSubstring("spec.podTemplate.spec.containers[0].command"))
		by := client.MergeFrom(template.DeepCopy())
		template.Spec.PodTemplate.Spec.Containers[0].Command = nil
		Expect(admin.Patch(ctx, template, by)).To(Succeed())
		template = reconcileTemplate(ctx)
		Expect(template).To(BeReady())
		Expect(template.Status.Conditions).To(HaveLen(1))
	})

	It("says that its egress rules are no rules, until they are mended", func(ctx SpecContext) {
		Expect(admin.Create(ctx, builders.MakeTemplate("default", h.namespace).EgressRule(networkingv1.NetworkPolicyEgressRule{
			To: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "banana"}}},
		}).Obj())).To(Succeed())
		template := reconcileTemplate(ctx)
		Expect(template).To(BeUnready(v1alpha1.ReasonTemplateInvalid))
		Expect(message(template)).To(And(ContainSubstring("spec.network.egressRules"), ContainSubstring("banana")))
		Expect(reconcileTemplate(ctx).ResourceVersion).To(Equal(template.ResourceVersion), "the template was written again")

		by := client.MergeFrom(template.DeepCopy())
		template.Spec.Network.EgressRules[0].To[0].IPBlock.CIDR = "192.0.2.0/24"
		Expect(admin.Patch(ctx, template, by)).To(Succeed())
		Expect(reconcileTemplate(ctx)).To(BeReady())
	})

	It("is tried again when another write came in between", func(ctx SpecContext) {
		Expect(admin.Create(ctx, builders.MakeTemplate("default", h.namespace).Obj())).To(Succeed())
		key := client.ObjectKey{Namespace: h.namespace, Name: "default"}
		var once sync.Once
		overtaken := bareHarness(ctx, h.namespace, interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, name string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				once.Do(func() {
					template := &v1alpha1.SandboxTemplate{}
					Expect(c.Get(ctx, key, template)).To(Succeed())
					template.Labels = map[string]string{"team": "research"} // no new generation: no event wakes us
					Expect(c.Update(ctx, template)).To(Succeed())
				})
				return c.SubResource(name).Patch(ctx, object, patch, opts...)
			},
		})
		_, err := overtaken.templates.Reconcile(ctx, reconcile.Request{NamespacedName: key})
		Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
		Expect(reconcileTemplate(ctx)).To(BeReady())
	})

	It("owns the policy of its own egress rules", func(ctx SpecContext) {
		https := intstr.FromInt32(443)
		Expect(admin.Create(ctx, builders.MakeTemplate("default", h.namespace).EgressRule(networkingv1.NetworkPolicyEgressRule{
			To:    []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.0/24"}}},
			Ports: []networkingv1.NetworkPolicyPort{{Port: &https}},
		}).Obj())).To(Succeed())
		template := reconcileTemplate(ctx)
		policy := &networkingv1.NetworkPolicy{}
		key := client.ObjectKey{Namespace: h.namespace, Name: "berth-template-default"}
		Expect(admin.Get(ctx, key, policy)).To(Succeed())
		Expect(metav1.IsControlledBy(policy, template)).To(BeTrue())
		Expect(policy.Spec.PodSelector.MatchLabels).To(HaveKeyWithValue(v1alpha1.LabelTemplate, "default"))
		Expect(policy.Spec.PolicyTypes).To(Equal([]networkingv1.PolicyType{networkingv1.PolicyTypeEgress}))
		version := policy.ResourceVersion
		reconcileTemplate(ctx)
		Expect(admin.Get(ctx, key, policy)).To(Succeed())
		Expect(policy.ResourceVersion).To(Equal(version), "the policy was written again")

		by := client.MergeFrom(template.DeepCopy())
		template.Spec.Network.EgressRules = nil
		Expect(admin.Patch(ctx, template, by)).To(Succeed())
		reconcileTemplate(ctx)
		Expect(apierrors.IsNotFound(admin.Get(ctx, key, policy))).To(BeTrue(), "the policy outlived its rules")
	})
})
