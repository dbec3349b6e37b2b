package e2e

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berth-dev/berth/test/session"
)

var _ = Describe("DELETE /sessions/{id}", func() {
	It("ends a session, and the same id at once gives a fresh pod and an empty workspace", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("again"))
		run(ctx, s, "kept=yes; echo old > file")
		before := t.sandbox(ctx, "again")

		Expect(session.End(ctx, t.target("again"))).To(Equal(http.StatusNoContent))
		Expect(run(ctx, s, `ls -A /workspace; echo "${kept-unset}"`)).To(Equal("unset\n"))

		after := t.sandbox(ctx, "again")
		Expect(after.UID).NotTo(Equal(before.UID))
		Expect(after.Status.PodUID).NotTo(Equal(before.Status.PodUID))
	}, SpecTimeout(specTimeout))

	It("does so on another replica than the one that was asked to delete", func(ctx context.Context) {
		t := newTenant(ctx)
		if len(t.gateways) < 2 {
			Fail("this spec needs two replicas of the gateway")
		}
		run(ctx, connect(ctx, t.targetAt(0, "again")), "echo old > file")
		other := connect(ctx, t.targetAt(1, "again"))
		run(ctx, other, "cat file")
		Expect(session.End(ctx, t.targetAt(0, "again"))).To(Equal(http.StatusNoContent))
		// The other replica's watch may be a moment behind. A call that it sent to
		// the old pod is told of the deletion; never does it get the old files.
		result, err := other.Bash(ctx, "ls -A /workspace")
		if err != nil {
			Expect(err).To(MatchError(ContainSubstring("the session was deleted while the call ran")))
			result, err = other.Bash(ctx, "ls -A /workspace")
		}
		Expect(err).NotTo(HaveOccurred())
		Expect(result.ExitCode).To(BeZero(), result.Stderr)
		Expect(result.Stdout).To(BeEmpty())
	}, SpecTimeout(specTimeout))

	It("kills the running command", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("busy"))
		run(ctx, s, "true")
		ended := make(chan error, 1)
		go func() {
			_, err := s.Bash(ctx, "echo > /workspace/started; sleep 300")
			ended <- err
		}()
		pod := t.podOf(ctx, "busy")
		Eventually(func() (string, error) {
			return admin.Exec(ctx, pod, "sandbox", "ls", "/workspace")
		}).WithTimeout(readyTimeout).WithPolling(interval).Should(ContainSubstring("started"))

		Expect(session.End(ctx, t.target("busy"))).To(Equal(http.StatusNoContent))
		Eventually(ended).WithTimeout(goneTimeout).Should(Receive(MatchError(ContainSubstring("deleted"))))
	}, SpecTimeout(specTimeout))

	It("is 204 for a session that isn't there, and for another caller's without touching it", func(ctx context.Context) {
		t := newTenant(ctx)
		Expect(session.End(ctx, t.target("nobody"))).To(Equal(http.StatusNoContent))

		s := connect(ctx, t.target("mine"))
		run(ctx, s, "kept=yes")
		stranger := t.target("mine")
		stranger.Token = t.newCaller(ctx, "stranger")
		Expect(session.End(ctx, stranger)).To(Equal(http.StatusNoContent))
		Expect(run(ctx, s, `echo "$kept"`)).To(Equal("yes\n"))
	}, SpecTimeout(specTimeout))
})
