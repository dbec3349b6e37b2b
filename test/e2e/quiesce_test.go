package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berth-dev/berth/api/v1alpha1"
	agentclient "github.com/berth-dev/berth/sandbox-agent/client"
)

var _ = Describe("A session's agent that is asked to quiesce", func() {
	var (
		t *tenant
		a *directAgent
	)
	BeforeEach(func(ctx context.Context) {
		t = newTenant(ctx)
		run(ctx, connect(ctx, t.target("s")), "true")
		a = t.agentAt(ctx, "s")
	})

	It("takes no more calls if it was idle for so long", func(ctx context.Context) {
		idle, err := a.Quiesce(ctx, a.pod, time.Millisecond)
		Expect(err).NotTo(HaveOccurred())
		Expect(idle.Quiesced).To(BeTrue())
		_, err = a.Exec(ctx, a.pod, agentclient.ExecRequest{Command: "true"}, 0)
		Expect(err).To(MatchError(agentclient.ErrGone))
		health, err := a.Health(ctx, a.pod)
		Expect(err).NotTo(HaveOccurred())
		Expect(health.Status).To(Equal(agentclient.StatusOK), "its pod is well")
		activity, err := a.Activity(ctx, a.pod)
		Expect(err).NotTo(HaveOccurred())
		Expect(activity.Quiesced).To(BeTrue())
	}, SpecTimeout(specTimeout))

	It("goes on if it was not, or a command runs", func(ctx context.Context) {
		busy, err := a.Quiesce(ctx, a.pod, time.Hour)
		Expect(err).NotTo(HaveOccurred())
		Expect(busy.Quiesced).To(BeFalse())
		Expect(busy.IdleMS).To(BeNumerically("<", time.Hour.Milliseconds()))

		ended := make(chan error, 1)
		go func() {
			_, err := a.Exec(ctx, a.pod, agentclient.ExecRequest{Command: "read line < <(tail -f /dev/null)", ID: "endless"}, 0)
			ended <- err
		}()
		Eventually(func(g Gomega) {
			activity, err := a.Activity(ctx, a.pod)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(activity.Running).To(Equal(1))
			g.Expect(activity.IdleMS).To(BeZero())
		}).WithTimeout(readyTimeout).WithPolling(interval).Should(Succeed())
		busy, err = a.Quiesce(ctx, a.pod, 0)
		Expect(err).NotTo(HaveOccurred())
		Expect(busy.Quiesced).To(BeFalse())
		Expect(a.CancelExec(ctx, a.pod, "endless")).To(Succeed())
		Eventually(ended).WithTimeout(goneTimeout).Should(Receive(BeNil()))

		result, err := a.Exec(ctx, a.pod, agentclient.ExecRequest{Command: "echo on"}, 0)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Stdout).To(Equal("on\n"))
	}, SpecTimeout(specTimeout))
})

var _ = Describe("A session with a background process that runs", func() {
	for _, c := range []struct {
		name     string
		activity bool
	}{
		{"is idle all the same", false},
		{"is not idle where the template says so", true},
	} {
		It(c.name, func(ctx context.Context) {
			t := newTenant(ctx, func(template *v1alpha1.SandboxTemplate) {
				template.Spec.Lifecycle = &v1alpha1.LifecycleDefaults{BackgroundIsActivity: &c.activity}
			})
			s := connect(ctx, t.target("s"))
			id, err := s.Start(ctx, "sleep 300", false)
			Expect(err).NotTo(HaveOccurred())
			a := t.agentAt(ctx, "s")
			activity, err := a.Quiesce(ctx, a.pod, 0)
			Expect(err).NotTo(HaveOccurred())
			Expect(activity.Processes).To(Equal(1))
			Expect(activity.Quiesced).To(Equal(!c.activity))
			if !c.activity {
				return
			}
			Expect(s.Signal(ctx, id, "KILL")).To(Succeed())
			readToEnd(ctx, s, id)
			activity, err = a.Quiesce(ctx, a.pod, 0)
			Expect(err).NotTo(HaveOccurred())
			Expect(activity.Quiesced).To(BeTrue(), "its end begins idleness")
		}, SpecTimeout(specTimeout))
	}
})
