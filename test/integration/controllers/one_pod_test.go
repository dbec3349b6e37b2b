package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers/sandbox/pod"
	"github.com/berth-dev/berth/test/builders"
)

var errCut = errors.New("connection cut")

var _ = Describe("One Sandbox, at most one live pod (R2)", func() {
	It("makes one pod, tells of it, and writes nothing once settled", func(ctx SpecContext) {
		h := newHarness(ctx, interceptor.Funcs{})
		session := h.ready(ctx, h.make("session"))
		live := h.pod(ctx, session)
		Expect(session.Status.PodUID).To(Equal(string(live.UID)))
		Expect(session.Status.PodName).To(Equal(live.Name))
		Expect(session.Status.PodIP).To(Equal("10.0.0.7"))
		Expect(session.Status.KeyID).To(Equal("key-0001"))
		Expect(session.Status.Start).To(Equal(v1alpha1.StartCold))
		Expect(session.Status.PodGeneration).To(HaveValue(BeEquivalentTo(1)))
		Expect(metav1.IsControlledBy(live, session)).To(BeTrue())

		policy := &networkingv1.NetworkPolicy{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: "berth-baseline"}, policy)).To(Succeed())
		again, wake := h.settle(ctx, "session")
		Expect(wake).To(BeZero())
		Expect(again.ResourceVersion).To(Equal(session.ResourceVersion), "the sandbox was written again")
		Expect(h.pod(ctx, session).ResourceVersion).To(Equal(live.ResourceVersion), "the pod was written again")
		before := policy.ResourceVersion
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(policy), policy)).To(Succeed())
		Expect(policy.ResourceVersion).To(Equal(before), "the policy was written again")
	})

	It("holds when two controllers reconcile the same sandboxes at the same time", func(ctx SpecContext) {
		one := newHarness(ctx, interceptor.Funcs{})
		two := bareHarness(ctx, one.namespace, interceptor.Funcs{})
		const sandboxes, rounds = 10, 4
		var all sync.WaitGroup
		for i := range sandboxes {
			name := fmt.Sprintf("race-%d", i)
			one.create(ctx, one.make(name))
			for _, h := range []*harness{one, two} {
				all.Go(func() {
					defer GinkgoRecover()
					for range rounds { // a conflict is an answer: another one was faster
						_, err := h.sandboxes.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: h.namespace, Name: name}})
						Expect(err).NotTo(HaveOccurred())
					}
				})
			}
		}
		all.Wait()
		for i := range sandboxes {
			session, _ := one.settle(ctx, fmt.Sprintf("race-%d", i))
			Expect(session.Status.PodUID).To(Equal(string(one.pod(ctx, session).UID)))
			Expect(session.Status.PodGeneration).To(HaveValue(BeEquivalentTo(1)))
		}
	})

	It("holds when the controller dies between the pod and the status", func(ctx SpecContext) {
		dying := newHarness(ctx, interceptor.Funcs{
			SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
				return errCut
			},
		})
		session := dying.create(ctx, dying.make("session"))
		_, err := dying.try(ctx, "session")
		Expect(err).To(MatchError(errCut))
		made := dying.pod(ctx, session)

		restarted := bareHarness(ctx, dying.namespace, interceptor.Funcs{})
		session, _ = restarted.settle(ctx, "session")
		Expect(restarted.pod(ctx, session).UID).To(Equal(made.UID))
		Expect(session.Status.PodUID).To(Equal(string(made.UID)))
	})

	It("holds when nobody knows whether the pod was created", func(ctx SpecContext) {
		var once sync.Once
		lagging := true
		funcs := withoutPods(&lagging) // which was not told of the pod either
		funcs.Create = func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			err := c.Create(ctx, object, opts...)
			if _, isPod := object.(*corev1.Pod); isPod {
				once.Do(func() { err = errors.Join(err, errCut) })
			}
			return err
		}
		h := newHarness(ctx, funcs)
		session := h.create(ctx, h.make("session"))
		_, err := h.try(ctx, "session")
		Expect(err).To(MatchError(errCut))
		made := h.pod(ctx, session)
		session, _ = h.settle(ctx, "session")
		Expect(h.pod(ctx, session).UID).To(Equal(made.UID))
		Expect(session.Status.PodUID).To(Equal(string(made.UID)))
	})

	It("holds when the cache has not the pod yet", func(ctx SpecContext) {
		lagging := false
		h := newHarness(ctx, withoutPods(&lagging))
		session := h.ready(ctx, h.make("session"))
		lagging = true
		after, _ := h.settle(ctx, "session")
		Expect(after.ResourceVersion).To(Equal(session.ResourceVersion))
		Expect(h.pod(ctx, session).UID).To(BeEquivalentTo(session.Status.PodUID))
	})

	It("holds when the cache has neither the pod nor its record", func(ctx SpecContext) {
		lagging := false
		var old *v1alpha1.Sandbox
		h := newHarness(ctx, withSandbox(&old, &lagging, withoutPods(&lagging)))
		old = h.create(ctx, h.make("session"))
		session, _ := h.settle(ctx, "session")
		session = h.makeReady(ctx, session)

		lagging = true
		for range 3 {
			_, err := h.try(ctx, "session")
			Expect(err).NotTo(HaveOccurred())
			Expect(h.pod(ctx, session).UID).To(BeEquivalentTo(session.Status.PodUID))
		}
		lagging = false
		after, _ := h.settle(ctx, "session")
		Expect(after).To(BeReady())
		Expect(after.Status.PodUID).To(Equal(session.Status.PodUID))
	})

	It("holds when the cache shows the generation before a replacement", func(ctx SpecContext) {
		lagging := false
		var old *v1alpha1.Sandbox
		h := newHarness(ctx, withSandbox(&old, &lagging, interceptor.Funcs{}))
		old = h.ready(ctx, h.make("session"))
		gone(ctx, h.pod(ctx, old))
		h.settle(ctx, "session")
		session := h.makeReady(ctx, old)
		Expect(session.Status.PodGeneration).To(HaveValue(BeEquivalentTo(2)))

		lagging = true
		for range 3 {
			_, err := h.try(ctx, "session")
			Expect(err).NotTo(HaveOccurred())
			Expect(h.pod(ctx, session).UID).To(BeEquivalentTo(session.Status.PodUID), "the live pod was taken for a stray, or doubled")
		}
	})

	It("holds when the cache shows the dead pod before its successor as the present one", func(ctx SpecContext) {
		lagging := false
		var old *v1alpha1.Sandbox
		h := newHarness(ctx, withSandbox(&old, &lagging, interceptor.Funcs{}))
		old = h.ready(ctx, h.make("session"))
		dead := h.pod(ctx, old)
		held(ctx, dead)
		gone(ctx, dead)
		h.settle(ctx, "session")
		session := h.makeReady(ctx, old)

		lagging = true
		_, err := h.try(ctx, "session")
		Expect(err).NotTo(HaveOccurred())
		Expect(h.pod(ctx, session).UID).To(BeEquivalentTo(session.Status.PodUID), "the live pod was taken for a stray")
	})

	It("writes no status over one that it has not seen", func(ctx SpecContext) {
		lagging := false
		var old *v1alpha1.Sandbox
		h := newHarness(ctx, withSandbox(&old, &lagging, interceptor.Funcs{List: withoutPods(&lagging).List}))
		old = h.ready(ctx, h.make("session"))
		dead := h.pod(ctx, old)
		held(ctx, dead)
		gone(ctx, dead)
		h.settle(ctx, "session")
		gone(ctx, h.pod(ctx, h.makeReady(ctx, old)))
		h.settle(ctx, "session")
		h.at(h.clock.Now().Add(time.Minute)) // the third waits
		h.settle(ctx, "session")
		third := h.makeReady(ctx, old)
		Expect(third.Status.PodGeneration).To(HaveValue(BeEquivalentTo(3)))

		lagging = true // it sees the first pod, terminating, and no other
		_, err := h.try(ctx, "session")
		Expect(err).NotTo(HaveOccurred())
		Expect(h.find(ctx, "session").ResourceVersion).To(Equal(third.ResourceVersion))
	})

	It("after a restart asks the API server before it gives a pod to an old sandbox", func(ctx SpecContext) {
		lagging := true
		h := newHarness(ctx, interceptor.Funcs{})
		session := h.ready(ctx, h.make("session"))
		gone(ctx, h.pod(ctx, session))
		h.settle(ctx, "session")
		session = h.makeReady(ctx, session)

		old := h.make("session").Obj()
		old.UID, old.CreationTimestamp, old.Generation, old.ResourceVersion = session.UID, session.CreationTimestamp, 1, "1"
		restarted := justElected(ctx, h.namespace, withSandbox(&old, &lagging, withoutPods(&lagging)))
		restarted.reconcile(ctx, "session")
		Expect(h.pod(ctx, session).UID).To(BeEquivalentTo(session.Status.PodUID), "a first pod was made beside the second")
	})

	It("deletes a second pod of the sandbox and keeps that of status", func(ctx SpecContext) {
		h := newHarness(ctx, interceptor.Funcs{})
		session := h.ready(ctx, h.make("session"))
		template := builders.MakeTemplate("default", h.namespace).Obj()
		second := pod.Build(session, template, 9, pod.Keys{NewestID: "key-0001"}, podOptions)
		Expect(admin.Create(ctx, second)).To(Succeed())
		Expect(h.pods(ctx, session)).To(HaveLen(2))

		after, _ := h.settle(ctx, "session")
		Expect(after).To(BeReady())
		Expect(h.pod(ctx, session).UID).To(BeEquivalentTo(session.Status.PodUID))
	})

	DescribeTable("neither adopts nor deletes a foreign pod of its pod's name", func(ctx SpecContext, disguise func(*corev1.Pod)) {
		h := newHarness(ctx, interceptor.Funcs{})
		session := h.create(ctx, h.make("session"))
		foreign := pod.Build(session, builders.MakeTemplate("default", h.namespace).Obj(), 1, pod.Keys{}, podOptions)
		disguise(foreign)
		Expect(admin.Create(ctx, foreign)).To(Succeed())

		after, wake := h.settle(ctx, "session")
		Expect(after).To(BeUnready(v1alpha1.ReasonNameConflict))
		Expect(after).To(HaveTrue(v1alpha1.ConditionStalled))
		Expect(message(after)).To(ContainSubstring(foreign.Name))
		Expect(after.Status.PodUID).To(BeEmpty())
		Expect(wake).To(BeNumerically(">", 0))
		before := foreign.ResourceVersion
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(foreign), foreign)).To(Succeed())
		Expect(foreign.ResourceVersion).To(Equal(before), "the foreign pod was touched")

		gone(ctx, foreign)
		after, _ = h.settle(ctx, "session")
		Expect(after).To(BeUnready(v1alpha1.ReasonPodPending))
		Expect(after.Status.PodUID).To(Equal(string(h.pod(ctx, session).UID)))
	},
		Entry("that the sandbox does not own", func(p *corev1.Pod) { p.OwnerReferences = nil }),
		Entry("that claims to be the sandbox's", func(p *corev1.Pod) { p.Labels = nil }),
		Entry("that claims to be the sandbox's and is another's", func(p *corev1.Pod) { p.Labels[v1alpha1.LabelSandboxUID] = "another" }),
	)

	It("gives a session that is deleted and created again a fresh pod at once", func(ctx SpecContext) {
		h := newHarness(ctx, interceptor.Funcs{})
		first := h.ready(ctx, h.make("session"))
		old := h.pod(ctx, first)
		Expect(admin.Delete(ctx, first)).To(Succeed())

		h.create(ctx, h.make("session"))
		second, _ := h.settle(ctx, "session")
		fresh := h.pod(ctx, second)
		Expect(fresh.UID).NotTo(Equal(old.UID))
		Expect(second.Status.PodUID).To(Equal(string(fresh.UID)))
		Expect(second).To(BeUnready(v1alpha1.ReasonPodPending), "the old pod's readiness is not the new one's")
	})
})

// withoutPods is a cache that has no pods while it lags.
func withoutPods(lagging *bool) interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if _, isPod := object.(*corev1.Pod); isPod && *lagging {
				return apierrors.NewNotFound(corev1.Resource("pods"), key.Name)
			}
			return c.Get(ctx, key, object, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, isPods := list.(*corev1.PodList); isPods && *lagging {
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	}
}

// withSandbox is a cache that shows the sandbox as it was, while it lags.
func withSandbox(was **v1alpha1.Sandbox, lagging *bool, beneath interceptor.Funcs) interceptor.Funcs {
	get := beneath.Get
	beneath.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
		if sandbox, ok := object.(*v1alpha1.Sandbox); ok && *lagging {
			(*was).DeepCopyInto(sandbox)
			return nil
		}
		if get != nil {
			return get(ctx, c, key, object, opts...)
		}
		return c.Get(ctx, key, object, opts...)
	}
	return beneath
}
