package e2e

import (
	"context"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/session"
)

const agentPort = 8090

// strayPort is where a stray pod listens.
const strayPort = 7777

// newStray runs a pod that is nobody's, in a namespace, and waits for it.
func newStray(ctx context.Context, namespace, name string) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: ptr.To(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](1000),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers: []corev1.Container{{
				Name: "stray", Image: image("sandbox-small"),
				Command:         []string{"nc", "-ll", "-p", strconv.Itoa(strayPort), "-e", "true"},
				SecurityContext: restricted(),
			}},
		},
	}
	Expect(admin.Create(ctx, pod)).To(Succeed())
	Expect(admin.WaitForPodReady(ctx, pod)).To(Succeed())
	return pod
}

// restricted is what Pod Security "restricted" asks of a container.
func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// reaches tells whether a stray pod can open a TCP connection to an address.
func reaches(ctx context.Context, from *corev1.Pod, ip string, port int) func() bool {
	return func() bool {
		_, err := admin.Exec(ctx, client.ObjectKeyFromObject(from), "stray", "bash", "-c", dial(ip, port))
		return err == nil
	}
}

var _ = Describe("A stray pod", func() {
	for where, otherNamespace := range map[string]bool{"in a session's namespace": false, "in another namespace": true} {
		It(where+" cannot reach an agent, and can once the policy is removed", Serial, func(ctx context.Context) {
			t := newTenant(ctx)
			s := connect(ctx, t.target("s"))
			run(ctx, s, "true")
			ip := t.sandbox(ctx, "s").Status.PodIP

			namespace := t.namespace
			if otherNamespace {
				namespace = newBareTenant(ctx).namespace
			}
			stray := newStray(ctx, namespace, "stray")
			Eventually(reaches(ctx, stray, ip, agentPort)).WithTimeout(policyTimeout).WithPolling(interval).Should(BeFalse())
			Consistently(reaches(ctx, stray, ip, agentPort)).WithTimeout(3 * connectTimeout).WithPolling(interval).Should(BeFalse())
			run(ctx, s, "true") // the gateway can, all the while

			// The controller would put the policy back.
			scaleController(ctx, 0)
			Expect(admin.DeleteAllOf(ctx, &networkingv1.NetworkPolicy{}, client.InNamespace(t.namespace))).To(Succeed())
			Eventually(reaches(ctx, stray, ip, agentPort)).WithTimeout(policyTimeout).WithPolling(interval).Should(BeTrue(),
				"without the policy the same connection must work, or this spec proves nothing")

			scaleController(ctx, controllerReplicas)
			Eventually(reaches(ctx, stray, ip, agentPort)).WithTimeout(policyTimeout).WithPolling(interval).Should(BeFalse(),
				"the controller puts the policy back")
		}, SpecTimeout(specTimeout))
	}

	It("cannot reach an agent by labels of the gateway", func(ctx context.Context) {
		t := newTenant(ctx)
		run(ctx, connect(ctx, t.target("s")), "true")
		stray := newStray(ctx, t.namespace, "stray")
		labelled := stray.DeepCopy()
		labelled.Labels[v1alpha1.LabelManagedBy] = v1alpha1.ManagedByBerth
		labelled.Labels[v1alpha1.LabelComponent] = "gateway"
		labelled.Labels[cluster.NameLabel] = "berth-gateway"
		Expect(admin.Patch(ctx, labelled, client.MergeFrom(stray))).To(Succeed())
		reach := reaches(ctx, stray, t.sandbox(ctx, "s").Status.PodIP, agentPort)
		Eventually(reach).WithTimeout(policyTimeout).WithPolling(interval).Should(BeFalse())
		Consistently(reach).WithTimeout(3 * connectTimeout).WithPolling(interval).Should(BeFalse())
	}, SpecTimeout(specTimeout))
})

var _ = Describe("A session's way out", func() {
	It("is closed where its template is silent", func(ctx context.Context) {
		t := newTenant(ctx)
		stray := newStray(ctx, t.namespace, "service")
		Expect(reaches(ctx, newStray(ctx, t.namespace, "peer"), stray.Status.PodIP, strayPort)()).To(BeTrue(), "the service is up")
		s := connect(ctx, t.target("closed"))
		expectClosed(ctx, s, stray.Status.PodIP, strayPort)
		expectClosed(ctx, s, apiServer(ctx), 443)
	}, SpecTimeout(specTimeout))

	It("is open to what its template's rules name, and to nothing else", func(ctx context.Context) {
		t := newTenant(ctx, withNetwork(v1alpha1.Network{EgressRules: []networkingv1.NetworkPolicyEgressRule{{
			To:    []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "service"}}}},
			Ports: []networkingv1.NetworkPolicyPort{{Port: ptr.To(intstr.FromInt32(strayPort))}},
		}}}))
		service, other := newStray(ctx, t.namespace, "service"), newStray(ctx, t.namespace, "other")
		s := connect(ctx, t.target("open"))
		Eventually(func() bool { return connects(ctx, s, service.Status.PodIP, strayPort) }).
			WithTimeout(policyTimeout).WithPolling(interval).Should(BeTrue())
		expectClosed(ctx, s, other.Status.PodIP, strayPort)
	}, SpecTimeout(specTimeout))

	It("does not lead to the cluster where its template says Internet", func(ctx context.Context) {
		t := newTenant(ctx, withNetwork(v1alpha1.Network{Egress: v1alpha1.EgressInternet}))
		stray := newStray(ctx, t.namespace, "service")
		s := connect(ctx, t.target("internet"))
		expectClosed(ctx, s, stray.Status.PodIP, strayPort)
		expectClosed(ctx, s, apiServer(ctx), 443)
	}, SpecTimeout(specTimeout))
})

// expectClosed waits until a session's connections to an address are dropped, and
// sees that they stay so. Policy engines learn of a pod after it has started.
func expectClosed(ctx context.Context, s *session.Session, ip string, port int) {
	GinkgoHelper()
	open := func() bool { return connects(ctx, s, ip, port) }
	Eventually(open).WithTimeout(policyTimeout).WithPolling(interval).Should(BeFalse(), "to %s, port %d", ip, port)
	Consistently(open).WithTimeout(connectTimeout).WithPolling(interval).Should(BeFalse(), "to %s, port %d", ip, port)
}

// apiServer is the address of the API server's Service.
func apiServer(ctx context.Context) string {
	GinkgoHelper()
	service := &corev1.Service{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}, service)).To(Succeed())
	return service.Spec.ClusterIP
}
