package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/session"
)

// fillMemory makes so many processes that are too small to be worth killing that
// the whole container goes.
const fillMemory = "f() { f | f & }; f; sleep 30"

var _ = Describe("A session that exceeds its memory limit", func() {
	var (
		t *tenant
		s *session.Session
	)
	BeforeEach(func(ctx context.Context) {
		limit := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
		t = newTenant(ctx, withResources(corev1.ResourceRequirements{Requests: limit, Limits: limit}))
		s = connect(ctx, t.target("hungry"))
		run(ctx, s, "kept=yes; echo mine > file")
	})

	It("by one process loses that command and nothing else", func(ctx context.Context) {
		result, err := s.Bash(ctx, "tail /dev/zero")
		Expect(err).NotTo(HaveOccurred())
		Expect(result.ExitCode).To(Equal(137))
		Expect(result.Notice).To(HavePrefix(v1alpha1.ReasonOOMKilled))
		Expect(run(ctx, s, `cat file; echo "$kept"`)).To(Equal("mine\nyes\n"))
		Expect(t.sandbox(ctx, "hungry").Status.LastTermination).To(BeNil(), "the container runs on")
	}, SpecTimeout(specTimeout))

	It("by its shell's own growth keeps the shell as it was before", func(ctx context.Context) {
		result, err := s.Bash(ctx, "kept=no; x=a; while :; do x=$x$x; done")
		Expect(err).NotTo(HaveOccurred())
		Expect(result.ExitCode).To(Equal(137))
		Expect(result.Notice).To(HavePrefix(v1alpha1.ReasonOOMKilled))
		Expect(run(ctx, s, `cat file; echo "$kept"`)).To(Equal("mine\nyes\n"))
	}, SpecTimeout(specTimeout))

	It("so that its container is killed keeps /workspace, and is told the reason", func(ctx context.Context) {
		_, err := s.Bash(ctx, fillMemory)
		Expect(err).To(MatchError(ContainSubstring(v1alpha1.ReasonOOMKilled)))

		result, err := s.Bash(ctx, `cat file; echo "${kept-unset}"`)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Stdout).To(Equal("mine\nunset\n"))
		Expect(result.Notice).To(ContainSubstring(v1alpha1.ReasonOOMKilled))

		status := t.waitReady(ctx, "hungry").Status
		Expect(status.PodGeneration).To(HaveValue(Equal(int64(1))), "the same pod")
		Expect(status.LastTermination).To(HaveField("Reason", v1alpha1.ReasonOOMKilled))
	}, SpecTimeout(specTimeout))
})
