package controllers_test

import (
	"context"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/builders"
)

// effective is how long the API server may take to act on a new quota or limit
// range: its caches follow by watch.
const effective = 30 * time.Second

// orphan is a deletion that waits, by a finalizer, for a garbage collector; there
// is none here.
const orphan = client.PropagationPolicy(metav1.DeletePropagationOrphan)

var _ = Describe("Ready tells the true cause (R7)", func() {
	It("TemplateNotFound, until the template comes", func(ctx SpecContext) {
		h := bareHarness(ctx, newNamespace(ctx), interceptor.Funcs{})
		session := h.create(ctx, h.make("session"))
		after, _ := h.settle(ctx, "session")
		Expect(after).To(BeUnready(v1alpha1.ReasonTemplateNotFound))
		Expect(after).To(HaveTrue(v1alpha1.ConditionStalled))
		Expect(message(after)).To(And(ContainSubstring(`"default"`), ContainSubstring(h.namespace)))
		Expect(after.Status.PodGeneration).To(BeNil())

		Expect(admin.Create(ctx, builders.MakeTemplate("default", h.namespace).Obj())).To(Succeed())
		h.settle(ctx, "session")
		Expect(h.makeReady(ctx, session)).To(BeReady())
	})

	It("TemplateInvalid names the field, until it is mended", func(ctx SpecContext) {
		h := bareHarness(ctx, newNamespace(ctx), interceptor.Funcs{})
		template := builders.MakeTemplate("default", h.namespace).Pod(func(p *corev1.PodTemplateSpec) { p.Spec.HostNetwork = true }).Obj()
		Expect(admin.Create(ctx, template)).To(Succeed())
		session := h.create(ctx, h.make("session"))
		after, _ := h.settle(ctx, "session")
		Expect(after).To(BeUnready(v1alpha1.ReasonTemplateInvalid))
		Expect(message(after)).To(ContainSubstring("hostNetwork"))
		Expect(h.pods(ctx, session)).To(BeEmpty())

		by := client.MergeFrom(template.DeepCopy())
		template.Spec.PodTemplate.Spec.HostNetwork = false
		Expect(admin.Patch(ctx, template, by)).To(Succeed())
		h.settle(ctx, "session")
		Expect(h.pods(ctx, session)).To(HaveLen(1))
	})

	It("QuotaExceeded in the quota's own words, until there is room", func(ctx SpecContext) {
		h := newHarness(ctx, interceptor.Funcs{})
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "no-room"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
		}
		Expect(admin.Create(ctx, quota)).To(Succeed())
		setQuota := func(pods string) { // there is no quota controller here
			quota.Status.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}
			quota.Status.Used = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
			Expect(admin.Status().Update(ctx, quota)).To(Succeed())
		}
		setQuota("0")
		waitUntilRefused(ctx, h.namespace, "exceeded quota")

		session := h.create(ctx, h.make("session"))
		h.at(h.clock.Now().Truncate(time.Second))
		after, wake := h.settle(ctx, "session")
		Expect(after).To(BeUnready(v1alpha1.ReasonQuotaExceeded))
		Expect(after).To(HaveTrue(v1alpha1.ConditionReconciling))
		Expect(message(after)).To(And(ContainSubstring("exceeded quota: no-room"), ContainSubstring("pods=1")))
		Expect(wake).To(Equal(time.Second))
		h.at(h.clock.Now().Add(20 * time.Second))
		again, wake := h.settle(ctx, "session")
		Expect(wake).To(Equal(20*time.Second), "the waits double")
		Expect(again.ResourceVersion).To(Equal(after.ResourceVersion), "a try that changes nothing writes nothing")

		setQuota("1")
		Eventually(func(g Gomega) {
			h.settle(ctx, "session")
			g.Expect(h.pods(ctx, session)).To(HaveLen(1))
		}).WithTimeout(effective).Should(Succeed())
	})

	It("PodForbidden in the API server's words", func(ctx SpecContext) {
		h := newHarness(ctx, interceptor.Funcs{})
		Expect(admin.Create(ctx, &corev1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "small"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("100Mi")},
			}}},
		})).To(Succeed())
		waitUntilRefused(ctx, h.namespace, "maximum memory usage")
		h.create(ctx, h.make("session"))
		after, wake := h.settle(ctx, "session")
		Expect(after).To(BeUnready(v1alpha1.ReasonPodForbidden))
		Expect(after).To(HaveTrue(v1alpha1.ConditionStalled))
		Expect(message(after)).To(ContainSubstring("maximum memory usage per Container is 100Mi"))
		Expect(wake).To(BeNumerically(">", 0))
	})

	It("PodForbidden for resources that contradict each other", func(ctx SpecContext) {
		h := bareHarness(ctx, newNamespace(ctx), interceptor.Funcs{})
		Expect(admin.Create(ctx, builders.MakeTemplate("default", h.namespace).Session(func(c *corev1.Container) {
			c.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
		}).Obj())).To(Succeed())
		h.create(ctx, h.make("session").Limit(corev1.ResourceMemory, "64Mi"))
		after, _ := h.settle(ctx, "session")
		Expect(after).To(BeUnready(v1alpha1.ReasonPodForbidden))
		Expect(message(after)).To(ContainSubstring("must be less than or equal to memory limit"))
	})

	It("what the kubelet and the scheduler say, and nothing lingers", func(ctx SpecContext) {
		h := newHarness(ctx, interceptor.Funcs{})
		session := h.create(ctx, h.make("session"))
		h.settle(ctx, "session")
		now := h.clock.Now()
		for _, step := range []struct {
			change func(*builders.Pod)
			reason string
		}{
			{func(p *builders.Pod) { p.Unschedulable("0/1 nodes are available: insufficient cpu") }, v1alpha1.ReasonUnschedulable},
			{func(p *builders.Pod) {
				p.Condition(corev1.PodScheduled, corev1.ConditionTrue, "", "").Waiting("ErrImagePull", "not found")
			}, v1alpha1.ReasonImagePullBackOff},
			{func(p *builders.Pod) { p.Waiting("CreateContainerConfigError", "no such secret") }, v1alpha1.ReasonCreateContainerError},
			{func(p *builders.Pod) { p.Exited(78, "Error", "NoShell: neither bash nor sh", now) }, v1alpha1.ReasonNoShell},
			{func(p *builders.Pod) { p.Waiting("CrashLoopBackOff", "back-off").Before(1, "Error", "", now) }, v1alpha1.ReasonCrashLoopBackOff},
			{func(p *builders.Pod) { p.Running(now.Add(-time.Minute)) }, v1alpha1.ReasonAgentUnreachable},
			{func(p *builders.Pod) { p.Ready(now, "10.0.0.7") }, v1alpha1.ReasonReady},
			{func(p *builders.Pod) { p.Running(now) }, v1alpha1.ReasonAgentUnreachable},
			{func(p *builders.Pod) { p.Ready(now, "10.0.0.7") }, v1alpha1.ReasonReady},
		} {
			h.becomes(ctx, h.pod(ctx, session), step.change)
			after, _ := h.settle(ctx, "session")
			if step.reason == v1alpha1.ReasonReady {
				Expect(after).To(BeReady())
				Expect(after.Status.Conditions).To(HaveLen(1))
				continue
			}
			Expect(after).To(BeUnready(step.reason))
			Expect(after.Status.Conditions).To(HaveLen(2))
		}
	})
})

// waitUntilRefused waits until the API server refuses a pod in those words.
func waitUntilRefused(ctx context.Context, namespace, words string) {
	GinkgoHelper()
	memory := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("200Mi")}
	Eventually(func() error {
		return admin.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "main", Image: "x", Resources: corev1.ResourceRequirements{Limits: memory},
			}}},
		}, client.DryRunAll)
	}).WithContext(ctx).WithTimeout(effective).Should(MatchError(ContainSubstring(words)))
}

var _ = Describe("Suspend and resume", func() {
	It("gives the pod up and makes the next", func(ctx SpecContext) {
		h := newHarness(ctx, interceptor.Funcs{})
		session := h.ready(ctx, h.make("session"))
		old := h.pod(ctx, session)
		held(ctx, old)
		setMode(ctx, session, v1alpha1.OperatingModeSuspended)
		after, wake := h.settle(ctx, "session")
		Expect(after).To(BeUnready(v1alpha1.ReasonSuspended))
		Expect(after).To(HaveTrue(v1alpha1.ConditionSuspended))
		Expect(after.Status.PodUID).To(BeEmpty())
		Expect(after.Status.LastTermination).To(BeNil(), "nothing ended by itself")
		Expect(h.pods(ctx, session)).To(BeEmpty())
		Expect(wake).To(BeZero())
		again, _ := h.settle(ctx, "session")
		Expect(again.ResourceVersion).To(Equal(after.ResourceVersion))

		setMode(ctx, after, v1alpha1.OperatingModeRunning) // the old pod still terminates
		h.settle(ctx, "session")
		resumed := h.makeReady(ctx, session)
		Expect(resumed.Status.Conditions).To(HaveLen(1), "Suspended lingers")
		Expect(resumed.Status.PodGeneration).To(HaveValue(BeEquivalentTo(2)))
		Expect(resumed.Status.PodUID).NotTo(Equal(string(old.UID)))
	})
})

func setMode(ctx context.Context, session *v1alpha1.Sandbox, mode v1alpha1.OperatingMode) {
	GinkgoHelper()
	by := client.MergeFrom(session.DeepCopy())
	session.Spec.OperatingMode = mode
	Expect(admin.Patch(ctx, session, by)).To(Succeed())
}

var _ = Describe("Deadlines", func() {
	It("maxLifetime deletes exactly then, and says so before", func(ctx SpecContext) {
		h := newHarness(ctx, interceptor.Funcs{})
		session := h.ready(ctx, h.make("session").MaxLifetime(time.Hour))
		end := session.CreationTimestamp.Add(time.Hour)
		Expect(session.Status.ExpiresAt.Time).To(BeTemporally("==", end))
		h.at(end.Add(-time.Minute))
		_, wake := h.settle(ctx, "session")
		Expect(wake).To(Equal(time.Minute))
		h.at(end.Add(-time.Second))
		_, wake = h.settle(ctx, "session")
		Expect(wake).To(Equal(time.Second))
	})

	It("announces Expired, then deletes the sandbox", func(ctx SpecContext) {
		h := newHarness(ctx, interceptor.Funcs{})
		session := h.ready(ctx, h.make("session").MaxLifetime(time.Hour))
		h.at(session.CreationTimestamp.Add(time.Hour))
		h.reconcile(ctx, "session")
		Expect(h.find(ctx, "session")).To(BeUnready(v1alpha1.ReasonExpired))
		h.reconcile(ctx, "session")
		Expect(h.find(ctx, "session")).To(BeNil())
	})

	It("startDeadline deletes what never became Ready, and nothing else", func(ctx SpecContext) {
		h := bareHarness(ctx, newNamespace(ctx), interceptor.Funcs{})
		Expect(admin.Create(ctx, builders.MakeTemplate("default", h.namespace).Lifecycle(0, 90*time.Second).Obj())).To(Succeed())
		started := h.ready(ctx, h.make("started"))
		stuck := h.create(ctx, h.make("stuck"))
		suspended := h.create(ctx, h.make("suspended").Suspended())
		h.at(stuck.CreationTimestamp.Add(89 * time.Second))
		_, wake := h.settle(ctx, "stuck")
		Expect(wake).To(Equal(time.Second))
		h.at(suspended.CreationTimestamp.Add(time.Hour))
		for _, name := range []string{started.Name, stuck.Name, suspended.Name} {
			h.reconcile(ctx, name)
			h.reconcile(ctx, name)
		}
		Expect(h.find(ctx, "stuck")).To(BeNil())
		Expect(h.find(ctx, "started")).To(BeReady())
		Expect(h.find(ctx, "suspended")).To(BeUnready(v1alpha1.ReasonSuspended))
	})

	It("yields to an edit that comes first", func(ctx SpecContext) {
		var pushOut atomic.Bool
		h := newHarness(ctx, interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
				if session, ok := object.(*v1alpha1.Sandbox); ok && pushOut.CompareAndSwap(true, false) {
					stored := &v1alpha1.Sandbox{}
					if err := c.Get(ctx, client.ObjectKeyFromObject(session), stored); err != nil {
						return err
					}
					by := client.MergeFrom(stored.DeepCopy())
					later := v1alpha1.Duration("24h")
					stored.Spec.MaxLifetime = &later
					if err := c.Patch(ctx, stored, by); err != nil {
						return err
					}
				}
				return c.Delete(ctx, object, opts...)
			},
		})
		session := h.ready(ctx, h.make("session").MaxLifetime(time.Hour))
		h.at(session.CreationTimestamp.Add(time.Hour))
		pushOut.Store(true)
		after, _ := h.settle(ctx, "session")
		Expect(after).To(BeReady())
		Expect(after.Status.ExpiresAt.Time).To(BeTemporally("==", session.CreationTimestamp.Add(24*time.Hour)))
	})

	It("a sandbox that is being deleted gets no pod", func(ctx SpecContext) {
		h := newHarness(ctx, interceptor.Funcs{})
		session := h.create(ctx, h.make("session"))
		Expect(admin.Delete(ctx, session, orphan)).To(Succeed())
		after, wake := h.settle(ctx, "session")
		Expect(after).To(BeUnready(v1alpha1.ReasonDeleting))
		Expect(h.pods(ctx, session)).To(BeEmpty())
		Expect(wake).To(BeZero())
		release(ctx, after)
	})

	It("a sandbox whose deletion waits for a finalizer keeps no pod", func(ctx SpecContext) {
		h := newHarness(ctx, interceptor.Funcs{})
		session := h.ready(ctx, h.make("session"))
		Expect(admin.Delete(ctx, session, orphan)).To(Succeed())
		h.settle(ctx, "session")
		Expect(h.pods(ctx, session)).To(BeEmpty())
		after, _ := h.settle(ctx, "session")
		Expect(after).To(BeUnready(v1alpha1.ReasonDeleting))
		Expect(after.Status.PodUID).To(BeEmpty())
		release(ctx, after)
	})
})
