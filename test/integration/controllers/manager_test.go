package controllers_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers"
	"github.com/berth-dev/berth/controllers/networkpolicy"
	"github.com/berth-dev/berth/test/builders"
	"github.com/berth-dev/berth/test/invariants"
)

const (
	// soon is how long anything may take that follows by watch.
	soon = 20 * time.Second
	// meanwhile is how long nothing may happen.
	meanwhile = 3 * time.Second
)

// start runs the whole controller as main does, without leader election, until
// the function it gives is called.
func start(system string) (stop func()) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	options := controllers.Configure(manager.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
	}, system)
	options.Controller.SkipNameValidation = ptr.To(true)
	mgr, err := ctrl.NewManager(config, options)
	Expect(err).NotTo(HaveOccurred())
	Expect(controllers.Register(ctx, mgr, controllers.Options{
		Namespace: system, Pod: podOptions, Network: networkpolicy.Options{SystemNamespace: system},
	})).To(Succeed())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	Expect(mgr.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
	return func() {
		GinkgoHelper()
		cancel()
		Eventually(done).WithTimeout(soon).Should(Receive(BeNil()))
	}
}

// The specs run one after the other: each manager takes up the sandboxes of all
// namespaces, as in a cluster.
var _ = Describe("The whole controller, with its cache and watches", Serial, func() {
	var namespace string
	var stop func()

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		stop = start(newNamespace(ctx))
		DeferCleanup(func() { stop() })
	})

	stored := func(ctx context.Context, name string) *v1alpha1.Sandbox {
		GinkgoHelper()
		object := &v1alpha1.Sandbox{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)).To(Succeed())
		return object
	}
	livePods := func(g Gomega, ctx context.Context, of *v1alpha1.Sandbox) []corev1.Pod {
		list := &corev1.PodList{}
		g.Expect(admin.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelSandboxUID: string(of.UID)})).To(Succeed())
		return list.Items
	}
	// kubelet makes the present pod of the sandbox ready.
	kubelet := func(ctx context.Context, name string) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			session := stored(ctx, name)
			g.Expect(session.Status.PodName).NotTo(BeEmpty())
			p := &corev1.Pod{}
			g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: session.Status.PodName}, p)).To(Succeed())
			g.Expect(admin.Status().Update(ctx, builders.PodFrom(p).Ready(time.Now(), "10.0.0.7").Obj())).To(Succeed())
		}).WithTimeout(soon).Should(Succeed())
	}
	becomes := func(ctx context.Context, name string, matcher func(*v1alpha1.Sandbox, Gomega)) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			session := stored(ctx, name)
			g.Expect(invariants.CheckSandbox(session)).To(Succeed())
			matcher(session, g)
		}).WithTimeout(soon).Should(Succeed())
	}
	ready := func(s *v1alpha1.Sandbox, g Gomega) { g.Expect(s).To(BeReady()) }

	It("brings many sandboxes up with one pod each, and then rests, also after a restart", func(ctx SpecContext) {
		Expect(admin.Create(ctx, builders.MakeTemplate("default", namespace).Obj())).To(Succeed())
		const sandboxes = 30
		for i := range sandboxes {
			Expect(admin.Create(ctx, builders.MakeSandbox(fmt.Sprintf("many-%d", i), namespace).Obj())).To(Succeed())
		}
		versions := map[string]string{}
		for i := range sandboxes {
			name := fmt.Sprintf("many-%d", i)
			kubelet(ctx, name)
			becomes(ctx, name, ready)
			session := stored(ctx, name)
			Expect(livePods(Default, ctx, session)).To(HaveLen(1))
			versions[name] = session.ResourceVersion
		}
		rests := func() {
			GinkgoHelper()
			Consistently(func(g Gomega) {
				for name, version := range versions {
					g.Expect(stored(ctx, name).ResourceVersion).To(Equal(version), name)
				}
			}).WithTimeout(meanwhile).Should(Succeed())
		}
		rests()
		stop()
		stop = start(newNamespace(ctx))
		rests()
	})

	It("starts what waited for its template once that comes", func(ctx SpecContext) {
		Expect(admin.Create(ctx, builders.MakeSandbox("early", namespace).Obj())).To(Succeed())
		becomes(ctx, "early", func(s *v1alpha1.Sandbox, g Gomega) {
			g.Expect(s).To(BeUnready(v1alpha1.ReasonTemplateNotFound))
		})
		Expect(admin.Create(ctx, builders.MakeTemplate("default", namespace).Obj())).To(Succeed())
		kubelet(ctx, "early")
		becomes(ctx, "early", ready)
	})

	It("replaces a pod that is deleted, and follows its readiness, by watch", func(ctx SpecContext) {
		Expect(admin.Create(ctx, builders.MakeTemplate("default", namespace).Obj())).To(Succeed())
		Expect(admin.Create(ctx, builders.MakeSandbox("killed", namespace).Obj())).To(Succeed())
		kubelet(ctx, "killed")
		becomes(ctx, "killed", ready)
		first := stored(ctx, "killed")
		p := &corev1.Pod{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: first.Status.PodName}, p)).To(Succeed())
		gone(ctx, p)
		becomes(ctx, "killed", func(s *v1alpha1.Sandbox, g Gomega) {
			g.Expect(s.Status.PodGeneration).To(HaveValue(BeEquivalentTo(2)))
			g.Expect(s.Status.PodUID).NotTo(BeEmpty())
		})
		kubelet(ctx, "killed")
		becomes(ctx, "killed", ready)
		Expect(livePods(Default, ctx, first)).To(HaveLen(1))
	})

	It("deletes what expires, by its own clock", func(ctx SpecContext) {
		Expect(admin.Create(ctx, builders.MakeSandbox("short", namespace).StartDeadline(time.Second).Obj())).To(Succeed())
		Eventually(func(g Gomega) {
			list := &v1alpha1.SandboxList{}
			g.Expect(admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
			g.Expect(list.Items).To(BeEmpty())
		}).WithTimeout(soon).Should(Succeed())
	})
})
