package e2e

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
)

// designer is someone who may do all with sandboxes and templates that RBAC can
// give, and nothing that makes a pod: what is left to stop a pod of their own
// design is Berth's.
type designer struct {
	*cluster.Cluster
	tenant *tenant
}

// evil is the image of the pod that the designer would like to have.
const evil = "ghcr.io/berth-dev/sandbox-busybox:dev"

var (
	berthResources = rbacv1.PolicyRule{
		APIGroups: []string{v1alpha1.GroupVersion.Group},
		Resources: []string{"sandboxes", "sandboxtemplates"}, Verbs: []string{"*"},
	}
	seePods    = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}}
	changePods = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "pods/ephemeralcontainers"}, Verbs: []string{"get", "list", "watch", "update", "patch", "delete"}}
	makePods   = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create", "get"}}
)

// newUser makes a user with these rules in the tenant's namespace.
func (t *tenant) newUser(ctx context.Context, name string, rules ...rbacv1.PolicyRule) *cluster.Cluster {
	GinkgoHelper()
	user := name + "@" + t.namespace
	meta := metav1.ObjectMeta{Namespace: t.namespace, Name: name}
	Expect(admin.Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules})).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	})).To(Succeed())
	as, err := admin.As(rest.ImpersonationConfig{UserName: user})
	Expect(err).NotTo(HaveOccurred())
	return as
}

var _ = Describe("A user who may create Sandboxes but not pods", func() {
	var d *designer
	BeforeEach(func(ctx context.Context) {
		t := newTenant(ctx)
		d = &designer{Cluster: t.newUser(ctx, "designer", berthResources, seePods), tenant: t}
		run(ctx, connect(ctx, t.target("live")), "true")
		Eventually(func() error { return d.List(ctx, &v1alpha1.SandboxTemplateList{}, client.InNamespace(t.namespace)) }).
			WithTimeout(policyTimeout).WithPolling(interval).Should(Succeed(), "the authorizer knows the user")
	})

	for way, attempt := range ways {
		It("is refused a pod of their own design by "+way, func(ctx context.Context) {
			err := attempt.try(ctx, d)
			Expect(err).To(MatchError(ContainSubstring(attempt.word)))
			Expect(refused(err)).To(BeTrue(), "%v", err)
			d.expectOnlyTheTemplatesPods(ctx)
		}, SpecTimeout(specTimeout))
	}

	It("gets pods of the template, whatever labels and annotations the Sandbox has", func(ctx context.Context) {
		marks := map[string]string{v1alpha1.LabelEgress: string(v1alpha1.EgressInternet), v1alpha1.LabelComponent: "gateway", "mine": "too"}
		Expect(d.Create(ctx, d.newSandbox(func(s *v1alpha1.Sandbox) { s.Labels, s.Annotations = marks, marks }))).To(Succeed())
		d.tenant.waitReady(ctx, "designed")
		pods := d.tenant.sessionPods(ctx, "designed")
		Expect(pods).To(HaveLen(1))
		Expect(pods[0].Labels).To(HaveKeyWithValue(v1alpha1.LabelEgress, string(v1alpha1.EgressNone)))
		Expect(pods[0].Labels).To(HaveKeyWithValue(v1alpha1.LabelComponent, v1alpha1.ComponentSandbox))
		Expect(pods[0].Labels).NotTo(HaveKey("mine"))
		Expect(pods[0].Annotations).NotTo(HaveKey("mine"))
		d.expectOnlyTheTemplatesPods(ctx)
	}, SpecTimeout(specTimeout))

	It("cannot use a template of another namespace by its name", func(ctx context.Context) {
		elsewhere := newBareTenant(ctx)
		elsewhere.addTemplate(ctx, "elsewhere", withImage(evil))
		Expect(d.Create(ctx, d.newSandbox(func(s *v1alpha1.Sandbox) { s.Spec.TemplateRef.Name = "elsewhere" }))).To(Succeed())
		d.tenant.waitReason(ctx, "designed", v1alpha1.ReasonTemplateNotFound)
		d.expectOnlyTheTemplatesPods(ctx)
	}, SpecTimeout(specTimeout))
})

// refused tells whether the API server refused a request, rather than failed. An
// upgraded connection has nothing but the text to tell by.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		strings.Contains(err.Error(), "is forbidden")
}

// expectOnlyTheTemplatesPods looks at every pod of the namespace.
func (d *designer) expectOnlyTheTemplatesPods(ctx context.Context) {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(admin.List(ctx, pods, client.InNamespace(d.tenant.namespace))).To(Succeed())
	for _, pod := range pods.Items {
		Expect(pod.Spec.Containers).To(HaveEach(HaveField("Image", image("sandbox-small"))), "pod %s", pod.Name)
		Expect(pod.Spec.EphemeralContainers).To(BeEmpty())
	}
}

var _ = Describe("A user who may change pods but not create them", func() {
	It("cannot add a container to a session's pod", func(ctx context.Context) {
		t := newTenant(ctx)
		d := &designer{Cluster: t.newUser(ctx, "changer", berthResources, changePods), tenant: t}
		run(ctx, connect(ctx, t.target("live")), "true")
		add := ways["an ephemeral container in a session's pod"].try
		Eventually(func() error { return add(ctx, d) }).WithTimeout(policyTimeout).WithPolling(interval).
			Should(MatchError(ContainSubstring("only by those who may create pods")))
		d.expectOnlyTheTemplatesPods(ctx)
	}, SpecTimeout(specTimeout))

	for what, attempt := range podWays {
		It("cannot change "+what, func(ctx context.Context) {
			t := newTenant(ctx)
			user := t.newUser(ctx, "changer", berthResources, changePods)
			run(ctx, connect(ctx, t.target("live")), "true")
			pod := &corev1.Pod{}
			Eventually(func() error { return user.Get(ctx, t.podOf(ctx, "live"), pod) }).
				WithTimeout(policyTimeout).WithPolling(interval).Should(Succeed(), "the authorizer knows the user")
			changed := pod.DeepCopy()
			attempt.edit(changed)
			err := user.Patch(ctx, changed, client.MergeFrom(pod))
			Expect(err).To(MatchError(ContainSubstring(attempt.word)))
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		}, SpecTimeout(specTimeout))
	}
})

var _ = Describe("A user who may create pods", func() {
	It("may write templates", func(ctx context.Context) {
		t := newTenant(ctx)
		user := t.newUser(ctx, "author", berthResources, makePods)
		Eventually(func() error { return user.Create(ctx, newTemplate(t.namespace, "mine")) }).
			WithTimeout(policyTimeout).WithPolling(interval).Should(Succeed())
		t.newSandbox(ctx, "s", "mine")
		t.waitReady(ctx, "s")
	}, SpecTimeout(specTimeout))

	It("cannot pass a pod off as a Sandbox's", func(ctx context.Context) {
		t := newTenant(ctx)
		user := t.newUser(ctx, "author", berthResources, makePods)
		run(ctx, connect(ctx, t.target("live")), "true")
		model := &corev1.Pod{}
		Expect(admin.Get(ctx, t.podOf(ctx, "live"), model)).To(Succeed())
		fake := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "fake", Labels: model.Labels, Annotations: model.Annotations},
			Spec:       model.Spec,
		}
		fake.Spec.NodeName = ""
		Eventually(func() error { return user.Create(ctx, fake.DeepCopy()) }).WithTimeout(policyTimeout).WithPolling(interval).
			Should(MatchError(ContainSubstring("made by Berth's controller only")))
	}, SpecTimeout(specTimeout))
})
