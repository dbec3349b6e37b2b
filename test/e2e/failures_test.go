package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/session"
)

// A caller who gets no session learns why, and so does whoever looks at the
// Sandbox.
var _ = Describe("A session that cannot start", func() {
	// fails calls bash in a new session, which must fail with all of these in its
	// text, and expects the reason in the Sandbox's condition as well.
	fails := func(ctx context.Context, t *tenant, reason string, words ...string) {
		GinkgoHelper()
		_, err := connect(ctx, t.target("failing")).Bash(ctx, "true")
		Expect(err).To(MatchError(session.ErrTool))
		Expect(err).To(MatchError(ContainSubstring("sandbox exec failed")))
		for _, word := range append(words, reason) {
			Expect(err).To(MatchError(ContainSubstring(word)))
		}
		condition := t.waitReason(ctx, "failing", reason)
		for _, word := range words {
			Expect(condition.Message).To(ContainSubstring(word))
		}
	}

	It("says that its image can't be pulled, and which", func(ctx context.Context) {
		const missing = "ghcr.io/berth-dev/there-is-no-such-image:v0"
		fails(ctx, newTenant(ctx, withImage(missing)), v1alpha1.ReasonImagePullBackOff, missing)
	}, SpecTimeout(specTimeout))

	It("says that no node takes its pod", func(ctx context.Context) {
		t := newTenant(ctx, withResources(corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4k")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4k")},
		}))
		fails(ctx, t, v1alpha1.ReasonUnschedulable, "Insufficient cpu")
	}, SpecTimeout(specTimeout))

	It("says that its template is missing, and which", func(ctx context.Context) {
		fails(ctx, newBareTenant(ctx), v1alpha1.ReasonTemplateNotFound, `"default"`)
	}, SpecTimeout(specTimeout))

	It("starts once its template is there", func(ctx context.Context) {
		t := newBareTenant(ctx)
		t.newSandbox(ctx, "early", v1alpha1.DefaultTemplateName)
		t.waitReason(ctx, "early", v1alpha1.ReasonTemplateNotFound)
		t.addTemplate(ctx, v1alpha1.DefaultTemplateName)
		t.waitReady(ctx, "early")
	}, SpecTimeout(specTimeout))

	It("says that its image has no shell", func(ctx context.Context) {
		t := newTenant(ctx, withImage(image("sandbox-noshell")))
		fails(ctx, t, v1alpha1.ReasonNoShell)
		Expect(meta.IsStatusConditionTrue(t.sandbox(ctx, "failing").Status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue(), "Stalled")
	}, SpecTimeout(specTimeout))
})
