package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/session"
)

var _ = Describe("A killed pod", func() {
	for name, grace := range map[string]int64{"by force": 0, "gracefully": 5} {
		It("is replaced when it was deleted "+name+", and the next call says so", func(ctx context.Context) {
			t := newTenant(ctx)
			s := connect(ctx, t.target("s"))
			run(ctx, s, "kept=yes; echo old > file")
			pod := t.podOf(ctx, "s")
			before := t.sandbox(ctx, "s").Status.PodUID
			Expect(admin.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}},
				client.GracePeriodSeconds(grace))).To(Succeed())

			// A gateway hears of it a moment later; until then calls rightly go to the
			// old pod. The first one that does not must tell.
			var result session.Result
			Eventually(func(g Gomega) {
				var err error
				result, err = s.Bash(ctx, `ls -A /workspace; echo "${kept-unset}"`)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(result.Stdout).To(Equal("unset\n"))
			}).WithTimeout(conditionTimeout).WithPolling(interval).Should(Succeed())
			Expect(result.Notice).To(ContainSubstring("pod was replaced"))

			after := t.sandbox(ctx, "s").Status
			Expect(after.PodUID).NotTo(Equal(before))
			Expect(after.PodGeneration).To(HaveValue(Equal(int64(2))))
			Expect(after.LastTermination).NotTo(BeNil())

			result, err := s.Bash(ctx, "true")
			Expect(err).NotTo(HaveOccurred())
			Expect(result.Notice).To(BeEmpty(), "a loss is told once")
		}, SpecTimeout(specTimeout))
	}

	It("leaves its Sandbox Ready again, with one pod", func(ctx context.Context) {
		t := newTenant(ctx)
		t.newSandbox(ctx, "s", v1alpha1.DefaultTemplateName)
		before := t.waitReady(ctx, "s").Status
		Expect(admin.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: before.PodName}},
			client.GracePeriodSeconds(0))).To(Succeed())
		sandbox := &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "s"}}
		Expect(admin.WaitUntil(ctx, sandbox, &v1alpha1.SandboxList{}, func() bool {
			return sandbox.Status.PodUID != "" && sandbox.Status.PodUID != before.PodUID
		})).To(Succeed())
		t.waitReady(ctx, "s")
		Expect(t.sessionPods(ctx, "s")).To(HaveLen(1))
	}, SpecTimeout(specTimeout))
})
