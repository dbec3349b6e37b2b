package controllers_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/builders"
)

var _ = Describe("A pod that ends is replaced (R3)", func() {
	DescribeTable("and how it ended is kept",
		func(ctx SpecContext, change func(*builders.Pod), reason string) {
			h := newHarness(ctx, interceptor.Funcs{})
			session := h.ready(ctx, h.make("session"))
			old := h.pod(ctx, session)
			h.becomes(ctx, old, change)

			first := h.reconcile(ctx, "session")
			Expect(first.RequeueAfter).To(BeNumerically(">", 0))
			Expect(h.find(ctx, "session")).NotTo(BeReady())
			after, _ := h.settle(ctx, "session")
			Expect(after.Status.LastTermination).To(HaveField("Reason", reason))
			Expect(after.Status.PodGeneration).To(HaveValue(BeEquivalentTo(2)))
			Expect(after.Status.PodFailures).To(HaveValue(BeEquivalentTo(1)))
			Expect(after).To(BeUnready(v1alpha1.ReasonPodPending))
			next := h.pod(ctx, session)
			Expect(next.UID).NotTo(Equal(old.UID))
			Expect(h.makeReady(ctx, session).Status.LastTermination).To(HaveField("Reason", reason))
		},
		Entry("failed", func(p *builders.Pod) { p.Exited(1, "Error", "", time.Now()).Phase(corev1.PodFailed, "", "") }, "Failed"),
		Entry("evicted", func(p *builders.Pod) { p.Phase(corev1.PodFailed, "Evicted", "The node was low on memory") }, "Evicted"),
		Entry("preempted by its kubelet", func(p *builders.Pod) { p.Phase(corev1.PodFailed, "Preempting", "critical pod") }, "Failed"),
		Entry("ended", func(p *builders.Pod) { p.Phase(corev1.PodSucceeded, "", "") }, "Completed"),
		Entry("out of memory as a whole", func(p *builders.Pod) { p.Exited(137, "OOMKilled", "", time.Now()).Phase(corev1.PodFailed, "", "") }, "OOMKilled"),
	)

	It("when it is deleted and gone", func(ctx SpecContext) {
		h := newHarness(ctx, interceptor.Funcs{})
		session := h.ready(ctx, h.make("session"))
		old := h.pod(ctx, session)
		gone(ctx, old)
		after, _ := h.settle(ctx, "session")
		Expect(after.Status.LastTermination).To(HaveField("Reason", "Deleted"))
		Expect(h.pod(ctx, session).Name).NotTo(Equal(old.Name))
	})

	It("as soon as it terminates, and a terminating pod is never Ready nor named by status", func(ctx SpecContext) {
		h := newHarness(ctx, interceptor.Funcs{})
		session := h.ready(ctx, h.make("session"))
		old := h.pod(ctx, session)
		held(ctx, old)
		gone(ctx, old)
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(old), old)).To(Succeed(), "it still terminates")

		h.reconcile(ctx, "session")
		between := h.find(ctx, "session")
		Expect(between).To(BeUnready(v1alpha1.ReasonPodTerminating))
		Expect(between.Status.PodUID).To(BeEmpty())
		after, _ := h.settle(ctx, "session")
		next := h.pod(ctx, session)
		Expect(after.Status.PodUID).To(Equal(string(next.UID)))
		Expect(next.UID).NotTo(Equal(old.UID))
		Expect(h.makeReady(ctx, session).Status.PodUID).To(Equal(string(next.UID)))
	})

	It("when its node is lost", func(ctx SpecContext) {
		h := newHarness(ctx, interceptor.Funcs{})
		session := h.ready(ctx, h.make("session"))
		old := h.pod(ctx, session)
		h.becomes(ctx, old, func(p *builders.Pod) { p.Condition(corev1.PodReady, corev1.ConditionFalse, "", "") })
		after, _ := h.settle(ctx, "session")
		Expect(after).To(BeUnready(v1alpha1.ReasonNodeLost))
		Expect(after.Status.PodUID).To(Equal(string(old.UID)), "it may come back, until it is evicted")

		h.becomes(ctx, old, func(p *builders.Pod) {
			p.Condition(corev1.DisruptionTarget, corev1.ConditionTrue, "DeletionByTaintManager", "node is unreachable")
		})
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(old), old)).To(Succeed())
		held(ctx, old)
		gone(ctx, old)
		after, _ = h.settle(ctx, "session")
		Expect(after.Status.LastTermination).To(HaveField("Reason", "NodeLost"))
		Expect(after.Status.PodUID).To(Equal(string(h.pod(ctx, session).UID)))
	})

	It("with exact waits that double, until it gives up and is asked again", func(ctx SpecContext) {
		h := newHarness(ctx, interceptor.Funcs{})
		session := h.create(ctx, h.make("session"))
		h.settle(ctx, "session")
		start := h.clock.Now().Truncate(time.Second)
		h.at(start)
		waits := []time.Duration{0, 1, 2, 4, 8, 16, 32}
		for i, seconds := range waits {
			h.becomes(ctx, h.pod(ctx, session), func(p *builders.Pod) { p.Phase(corev1.PodFailed, "Evicted", "again") })
			after, wake := h.settle(ctx, "session")
			wait := seconds * time.Second
			Expect(wake).To(Equal(wait), "after pod %d", i+1)
			if wait == 0 {
				continue
			}
			Expect(after).To(BeUnready(v1alpha1.ReasonEvicted))
			Expect(after.Status.PodUID).To(BeEmpty())
			h.at(h.clock.Now().Add(wait - time.Second))
			_, wake = h.settle(ctx, "session")
			if wait > time.Second {
				Expect(wake).To(Equal(time.Second), "a second before the end it waits for that second")
			}
			h.at(h.clock.Now().Add(time.Second))
			h.settle(ctx, "session")
		}
		h.becomes(ctx, h.pod(ctx, session), func(p *builders.Pod) { p.Phase(corev1.PodFailed, "Evicted", "once more") })
		after, wake := h.settle(ctx, "session")
		Expect(wake).To(BeZero())
		Expect(after).To(BeUnready(v1alpha1.ReasonBackOff))
		Expect(after).To(HaveTrue(v1alpha1.ConditionStalled))
		Expect(message(after)).To(ContainSubstring("8 pods ended in a row"))
		Expect(h.pods(ctx, session)).To(BeEmpty())

		by := client.MergeFrom(after.DeepCopy())
		after.Spec.OperatingMode = v1alpha1.OperatingModeSuspended
		Expect(admin.Patch(ctx, after, by)).To(Succeed())
		h.settle(ctx, "session")
		by = client.MergeFrom(after.DeepCopy())
		after.Spec.OperatingMode = v1alpha1.OperatingModeRunning
		Expect(admin.Patch(ctx, after, by)).To(Succeed())
		h.settle(ctx, "session")
		Expect(h.makeReady(ctx, session).Status.PodFailures).To(BeNil())
	})

	It("but not when its container restarts in place, which is reported", func(ctx SpecContext) {
		h := newHarness(ctx, interceptor.Funcs{})
		session := h.ready(ctx, h.make("session"))
		live := h.pod(ctx, session)
		at := h.clock.Now().Truncate(time.Second)
		h.becomes(ctx, live, func(p *builders.Pod) { p.Exited(137, "OOMKilled", "", at) })
		after, _ := h.settle(ctx, "session")
		Expect(after).To(BeUnready(v1alpha1.ReasonOOMKilled))
		Expect(after.Status.PodUID).To(Equal(string(live.UID)))

		h.becomes(ctx, live, func(p *builders.Pod) { p.Ready(at.Add(time.Second), "10.0.0.7").Before(137, "OOMKilled", "", at) })
		after, _ = h.settle(ctx, "session")
		Expect(after).To(BeReady())
		Expect(after.Status.PodUID).To(Equal(string(live.UID)))
		Expect(after.Status.PodGeneration).To(HaveValue(BeEquivalentTo(1)))
		Expect(after.Status.LastTermination).To(HaveField("Reason", "OOMKilled"))
	})

	It("but not when its template is edited; the next pod has the edit", func(ctx SpecContext) {
		h := newHarness(ctx, interceptor.Funcs{})
		session := h.ready(ctx, h.make("session"))
		live := h.pod(ctx, session)
		template := &v1alpha1.SandboxTemplate{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: "default"}, template)).To(Succeed())
		by := client.MergeFrom(template.DeepCopy())
		template.Spec.PodTemplate.Spec.Containers[0].Image = "registry.example/sandbox:2"
		Expect(admin.Patch(ctx, template, by)).To(Succeed())

		after, _ := h.settle(ctx, "session")
		Expect(after.ResourceVersion).To(Equal(session.ResourceVersion))
		Expect(h.pod(ctx, session).UID).To(Equal(live.UID))
		gone(ctx, live)
		h.settle(ctx, "session")
		Expect(h.pod(ctx, session).Spec.Containers[0].Image).To(Equal("registry.example/sandbox:2"))
	})
})
