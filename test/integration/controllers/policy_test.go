package controllers_test

import (
	"context"
	"net/netip"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers/networkpolicy"
	"github.com/berth-dev/berth/test/builders"
)

var _ = Describe("Network policies (R8)", func() {
	It("are there before the first pod", func(ctx SpecContext) {
		var order []string
		var mutex sync.Mutex
		note := func(what string) {
			mutex.Lock()
			defer mutex.Unlock()
			order = append(order, what)
		}
		h := bareHarness(ctx, newNamespace(ctx), interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
				err := c.Create(ctx, object, opts...)
				if _, isPod := object.(*corev1.Pod); isPod && err == nil {
					note("pod")
				}
				return err
			},
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
				err := c.Patch(ctx, object, patch, opts...)
				if err == nil {
					note("policy")
				}
				return err
			},
		})
		Expect(admin.Create(ctx, builders.MakeTemplate("default", h.namespace).Egress(v1alpha1.EgressInternet).Obj())).To(Succeed())
		h.create(ctx, h.make("session"))
		h.settle(ctx, "session")
		Expect(order).To(Equal([]string{"policy", "policy", "pod"}))
		Expect(policies(ctx, h.namespace)).To(ConsistOf("berth-baseline", "berth-egress-internet"))
	})

	It("let no pod be made when they can't be applied", func(ctx SpecContext) {
		h := newHarness(ctx, interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return errCut
			},
		})
		session := h.create(ctx, h.make("session"))
		_, err := h.try(ctx, "session")
		Expect(err).To(MatchError(errCut))
		Expect(h.pods(ctx, session)).To(BeEmpty())
	})

	It("are no trouble in a namespace that is being deleted, where no pod can be made", func(ctx SpecContext) {
		h := newHarness(ctx, interceptor.Funcs{})
		session := h.create(ctx, h.make("session"))
		Expect(admin.Create(ctx, builders.MakeTemplate("rules", h.namespace).EgressRule(networkingv1.NetworkPolicyEgressRule{}).Obj())).To(Succeed())
		Expect(admin.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}})).To(Succeed())

		_, err := networkpolicy.NewController(admin, h.keeper).Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Name: h.namespace}})
		Expect(err).NotTo(HaveOccurred())
		_, err = h.templates.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: h.namespace, Name: "rules"}})
		Expect(err).NotTo(HaveOccurred())
		after, _ := h.settle(ctx, "session")
		Expect(after).To(BeUnready(v1alpha1.ReasonPodForbidden))
		Expect(h.pods(ctx, session)).To(BeEmpty())
		Expect(policies(ctx, h.namespace)).To(BeEmpty())
	})

	It("are stored just as they are meant, and repaired when changed or deleted", func(ctx SpecContext) {
		h := newHarness(ctx, interceptor.Funcs{})
		keeper := networkpolicy.NewKeeper(admin, networkpolicy.Options{
			SystemNamespace: "berth-system",
			ClusterCIDRs:    []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("10.96.0.0/12")},
		})
		controller := networkpolicy.NewController(admin, keeper)
		Expect(admin.Create(ctx, builders.MakeTemplate("open", h.namespace).Egress(v1alpha1.EgressInternet).Obj())).To(Succeed())
		Expect(admin.Create(ctx, builders.MakeTemplate("names", h.namespace).Egress(v1alpha1.EgressClusterDNS).Obj())).To(Succeed())
		reconcileAll := func() {
			GinkgoHelper()
			_, err := controller.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Name: h.namespace}})
			Expect(err).NotTo(HaveOccurred())
		}
		reconcileAll()
		stored := policies(ctx, h.namespace)
		Expect(stored).To(ConsistOf("berth-baseline", "berth-egress-cluster-dns", "berth-egress-internet"))
		versions := policyVersions(ctx, h.namespace)
		reconcileAll()
		Expect(policyVersions(ctx, h.namespace)).To(Equal(versions), "a second reconcile wrote")

		baseline := &networkingv1.NetworkPolicy{}
		key := client.ObjectKey{Namespace: h.namespace, Name: "berth-baseline"}
		Expect(admin.Get(ctx, key, baseline)).To(Succeed())
		wanted := baseline.Spec.DeepCopy()
		for _, tamper := range []func(*networkingv1.NetworkPolicySpec){
			func(s *networkingv1.NetworkPolicySpec) { s.Egress = []networkingv1.NetworkPolicyEgressRule{{}} },
			func(s *networkingv1.NetworkPolicySpec) {
				s.Ingress = append(s.Ingress, networkingv1.NetworkPolicyIngressRule{})
			},
			func(s *networkingv1.NetworkPolicySpec) { s.PodSelector.MatchLabels["narrowed"] = "away" },
			func(s *networkingv1.NetworkPolicySpec) { s.PolicyTypes = s.PolicyTypes[:1] },
		} {
			tamper(&baseline.Spec)
			Expect(admin.Update(ctx, baseline)).To(Succeed())
			reconcileAll()
			Expect(admin.Get(ctx, key, baseline)).To(Succeed())
			Expect(equality.Semantic.DeepEqual(baseline.Spec, *wanted)).To(BeTrue(), "%+v", baseline.Spec)
		}

		h.create(ctx, h.make("session"))
		Expect(admin.DeleteAllOf(ctx, &v1alpha1.SandboxTemplate{}, client.InNamespace(h.namespace))).To(Succeed())
		Expect(admin.Delete(ctx, baseline)).To(Succeed())
		reconcileAll()
		Expect(policies(ctx, h.namespace)).To(ContainElement("berth-baseline"), "nothing opens when a template is deleted")
	})
})

func policies(ctx context.Context, namespace string) []string {
	GinkgoHelper()
	var names []string
	for name := range policyVersions(ctx, namespace) {
		names = append(names, name)
	}
	return names
}

func policyVersions(ctx context.Context, namespace string) map[string]string {
	GinkgoHelper()
	list := &networkingv1.NetworkPolicyList{}
	Expect(admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	versions := map[string]string{}
	for _, item := range list.Items {
		versions[item.Name] = item.ResourceVersion
	}
	return versions
}
