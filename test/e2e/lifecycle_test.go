package e2e

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
)

// create makes a Sandbox of the default template, edited.
func (t *tenant) create(ctx context.Context, id string, edit func(*v1alpha1.SandboxSpec)) {
	GinkgoHelper()
	sandbox := &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: id}}
	edit(&sandbox.Spec)
	Expect(admin.Create(ctx, sandbox)).To(Succeed())
}

// waitGone waits until a Sandbox and its pods are gone.
func (t *tenant) waitGone(ctx context.Context, id string) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, goneTimeout)
	defer cancel()
	pods := t.sessionPods(ctx, id)
	Expect(admin.WaitUntilGone(ctx, &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: id}}, &v1alpha1.SandboxList{})).To(Succeed())
	for i := range pods {
		Expect(admin.WaitUntilGone(ctx, &pods[i], &corev1.PodList{})).To(Succeed())
	}
}

var _ = Describe("A session", func() {
	It("has an ID of 63 characters at most", func(ctx context.Context) {
		t := newTenant(ctx)
		longest := strings.Repeat("s", 63)
		Expect(run(ctx, connect(ctx, t.target(longest)), "echo hello")).To(Equal("hello\n"))
		Expect(t.sandbox(ctx, longest).Name).To(Equal(longest))

		_, err := connect(ctx, t.target(longest+"s")).Bash(ctx, "true")
		Expect(err).To(MatchError(ContainSubstring("invalid X-Session-ID header")))
		_, err = connect(ctx, t.target("")).Bash(ctx, "true")
		Expect(err).To(MatchError(ContainSubstring("missing X-Session-ID header")))
		sandboxes := &v1alpha1.SandboxList{}
		Expect(admin.List(ctx, sandboxes, client.InNamespace(t.namespace))).To(Succeed())
		Expect(sandboxes.Items).To(HaveLen(1), "nothing else was made")
	}, SpecTimeout(specTimeout))

	It("has its Sandbox's environment and resources", func(ctx context.Context) {
		t := newTenant(ctx)
		t.create(ctx, "s", func(spec *v1alpha1.SandboxSpec) {
			spec.Env = []v1alpha1.EnvVar{{Name: "GREETING", Value: ptr.To("it's $HOME, \"quoted\"\nand on two lines")}}
			spec.Resources = &v1alpha1.Resources{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("96Mi")}}
		})
		s := connect(ctx, t.target("s"))
		Expect(run(ctx, s, `printf %s "$GREETING"`)).To(Equal("it's $HOME, \"quoted\"\nand on two lines"))
		pod := &corev1.Pod{}
		Expect(admin.Get(ctx, t.podOf(ctx, "s"), pod)).To(Succeed())
		Expect(pod.Spec.Containers[0].Resources.Limits.Memory().String()).To(Equal("96Mi"))
		for _, variable := range pod.Spec.Containers[0].Env {
			Expect(variable.Name).NotTo(Equal("GREETING"), "the environment is never part of the pod")
		}
	}, SpecTimeout(specTimeout))

	It("has no pod while it is suspended, says so to callers, and comes back", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("s"))
		run(ctx, s, "true")
		pod := t.podOf(ctx, "s")

		kubectl(ctx, "patch", "sbx", "s", "-n", t.namespace, "--type=merge", "-p", `{"spec":{"operatingMode":"Suspended"}}`)
		Expect(admin.WaitUntilGone(ctx, podNamed(pod), &corev1.PodList{})).To(Succeed())
		t.waitReason(ctx, "s", v1alpha1.ReasonSuspended)
		Expect(meta.IsStatusConditionTrue(t.sandbox(ctx, "s").Status.Conditions, v1alpha1.ConditionSuspended)).To(BeTrue())
		_, err := s.Bash(ctx, "true")
		Expect(err).To(MatchError(ContainSubstring(v1alpha1.ReasonSuspended)))

		kubectl(ctx, "patch", "sbx", "s", "-n", t.namespace, "--type=merge", "-p", `{"spec":{"operatingMode":"Running"}}`)
		t.waitReady(ctx, "s")
		Expect(run(ctx, s, "echo again")).To(Equal("again\n"))
		Expect(meta.FindStatusCondition(t.sandbox(ctx, "s").Status.Conditions, v1alpha1.ConditionSuspended)).To(BeNil())
	}, SpecTimeout(specTimeout))

	It("ends with its maxLifetime, busy as it may be", func(ctx context.Context) {
		t := newTenant(ctx)
		t.create(ctx, "s", func(spec *v1alpha1.SandboxSpec) { spec.MaxLifetime = ptr.To(v1alpha1.Duration("10s")) })
		t.waitReady(ctx, "s")
		_, err := connect(ctx, t.target("s")).Bash(ctx, "sleep 120")
		Expect(err).To(MatchError(ContainSubstring("deleted")))
		t.waitGone(ctx, "s")
	}, SpecTimeout(specTimeout))

	It("ends with its startDeadline if it has not started", func(ctx context.Context) {
		t := newTenant(ctx, withImage("ghcr.io/berth-dev/there-is-no-such-image:v0"))
		t.create(ctx, "s", func(spec *v1alpha1.SandboxSpec) { spec.StartDeadline = ptr.To(v1alpha1.Duration("3s")) })
		t.waitGone(ctx, "s")
	}, SpecTimeout(specTimeout))

	It("is not ended by signals from inside", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("s"))
		run(ctx, s, "kept=yes; for signal in HUP INT QUIT ILL ABRT KILL SEGV PIPE USR1 USR2 STOP TSTP; do kill -s $signal 1; done")
		Expect(run(ctx, s, `echo "$kept"`)).To(Equal("yes\n"))
		result, err := s.Bash(ctx, "kill -9 $$")
		Expect(err).NotTo(HaveOccurred())
		Expect(result.ExitCode).To(Equal(137))
		Expect(run(ctx, s, `echo "$kept"`)).To(Equal("yes\n"), "the shell goes on as it was before")
		Expect(t.sandbox(ctx, "s").Status.LastTermination).To(BeNil())
	}, SpecTimeout(specTimeout))

	It("serves a command for longer than proxies' usual limits", func(ctx context.Context) {
		t := newTenant(ctx)
		Expect(run(ctx, connect(ctx, t.target("s")), "sleep 35; echo done")).To(Equal("done\n"))
	}, SpecTimeout(specTimeout))
})
