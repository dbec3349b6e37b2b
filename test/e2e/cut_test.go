package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/session"
)

// hidden is what is there of an upload of half.bin that is under way.
const hidden = `^\.half\.bin\.upload-[0-9a-f]{16}\n$`

// startHalf uploads a file that has no end, in the background, and waits until
// some of it is there, hidden.
func startHalf(ctx context.Context, target session.Target, s *session.Session) <-chan uploadEnd {
	GinkgoHelper()
	ended := startUpload(ctx, target, "half.bin", trickling(ctx))
	Eventually(func() string { return run(ctx, s, "ls -A uploads 2>/dev/null || true") }).
		WithTimeout(readyTimeout).WithPolling(interval).Should(MatchRegexp(hidden))
	return ended
}

// trickling gives a little now and then, until the context ends.
func trickling(ctx context.Context) io.Reader {
	reader, writer := io.Pipe()
	go func() {
		for {
			if _, err := io.WriteString(writer, piece); err != nil {
				return // the upload has ended
			}
			select {
			case <-time.After(interval):
			case <-ctx.Done():
				writer.CloseWithError(ctx.Err())
				return
			}
		}
	}()
	return reader
}

var _ = Describe("A container that is killed", func() {
	It("during an upload leaves nothing that could be taken for the file, and the upload fails", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("s"))
		run(ctx, s, "true")
		uploaded := startHalf(ctx, t.target("s"), s)

		killContainer(ctx, t.podOf(ctx, "s"), v1alpha1.SessionContainerName)
		var end uploadEnd
		Eventually(uploaded).WithTimeout(readyTimeout).Should(Receive(&end))
		var refusal *session.Refusal
		Expect(errors.As(end.err, &refusal)).To(BeTrue(), "%v", end.err)
		Expect(refusal.Status).To(Equal(http.StatusBadGateway))

		Expect(run(ctx, s, "ls -A uploads")).To(MatchRegexp(hidden), "the file alone that is swept once it is an hour old")
		Expect(upload(ctx, t.target("s"), "half.bin", strings.NewReader("whole")).Name).To(Equal("half.bin"))
		Expect(run(ctx, s, "cat uploads/half.bin")).To(Equal("whole"))
	}, SpecTimeout(specTimeout))

	It("while an artifact is read breaks the reading off", func(ctx context.Context) {
		t := newTenant(ctx, withLongArtifacts)
		s := connect(ctx, t.target("s"))
		rest := startReading(ctx, t.target("s"), s)
		killContainer(ctx, t.podOf(ctx, "s"), v1alpha1.SessionContainerName)
		expectCut(rest)
	}, SpecTimeout(specTimeout))
})

var _ = Describe("A replica of the gateway that is killed", Serial, func() {
	It("during an upload leaves nothing of the file, and the upload fails", func(ctx context.Context) {
		t := newTenant(ctx)
		victim, survivor := twoGateways(ctx)
		s := connect(ctx, t.targetAtAddress(survivor.address, "s"))
		run(ctx, s, "true")
		uploaded := startHalf(ctx, t.targetAtAddress(victim.address, "s"), s)

		victim.kill(ctx)
		var end uploadEnd
		Eventually(uploaded).WithTimeout(readyTimeout).Should(Receive(&end))
		Expect(end.err).To(HaveOccurred())
		Eventually(func() string { return run(ctx, s, "ls -A uploads") }).WithTimeout(readyTimeout).WithPolling(interval).Should(BeEmpty())
	}, SpecTimeout(specTimeout))

	It("while an artifact is read breaks the reading off, and another replica gives all of it", func(ctx context.Context) {
		t := newTenant(ctx, withLongArtifacts)
		victim, survivor := twoGateways(ctx)
		s := connect(ctx, t.targetAtAddress(survivor.address, "s"))
		rest := startReading(ctx, t.targetAtAddress(victim.address, "s"), s)
		victim.kill(ctx)
		expectCut(rest)
		whole := startReading(ctx, t.targetAtAddress(survivor.address, "s"), s)
		Expect(io.Copy(io.Discard, whole)).To(BeEquivalentTo(longBytes - block))
	}, SpecTimeout(specTimeout))
})

// gatewayReplica is one pod of the gateway, and a port to it.
type gatewayReplica struct {
	pod     client.ObjectKey
	address string
}

// twoGateways reaches two replicas of the gateway.
func twoGateways(ctx context.Context) (a, b gatewayReplica) {
	GinkgoHelper()
	pods, err := admin.ReadyPods(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: "berth-gateway"})
	Expect(err).NotTo(HaveOccurred())
	Expect(len(pods)).To(BeNumerically(">=", 2), "replicas of the gateway")
	reach := func(pod *corev1.Pod) gatewayReplica {
		key := client.ObjectKeyFromObject(pod)
		return gatewayReplica{key, forward(ctx, key, cluster.GatewayPort)}
	}
	return reach(&pods[0]), reach(&pods[1])
}

// kill kills a replica's process. The spec ends once there is another one.
func (g gatewayReplica) kill(ctx context.Context) {
	GinkgoHelper()
	DeferCleanup(func(ctx context.Context) { waitRollout(ctx, "berth-gateway") }, NodeTimeout(rolloutTimeout))
	killContainer(ctx, g.pod, "gateway")
}

// targetAtAddress is a session of the tenant's caller, at a gateway.
func (t *tenant) targetAtAddress(address, id string) session.Target {
	return session.Target{Address: address, Token: t.token, ID: id}
}

// longBytes is more than the buffers between an agent and a client hold.
const longBytes = 256 << 20

// withLongArtifacts lets a session export that much.
func withLongArtifacts(template *v1alpha1.SandboxTemplate) {
	template.Spec.Limits = &v1alpha1.Limits{ArtifactBytes: ptr.To[int64](longBytes)}
}

// startReading begins to read a long artifact, and returns what reads the rest.
func startReading(ctx context.Context, target session.Target, s *session.Session) (rest io.ReadCloser) {
	GinkgoHelper()
	run(ctx, s, fmt.Sprintf("truncate -s %d long", longBytes))
	artifact, err := s.Export(ctx, "long")
	Expect(err).NotTo(HaveOccurred())
	answer, err := session.Get(ctx, target, artifact.URI, nil)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(answer.Body.Close)
	Expect(answer.ContentLength).To(BeEquivalentTo(longBytes))
	_, err = io.CopyN(io.Discard, answer.Body, block)
	Expect(err).NotTo(HaveOccurred())
	return answer.Body
}

// expectCut expects a reading to end in an error, not at a length that could be
// taken for all of it.
func expectCut(rest io.Reader) {
	GinkgoHelper()
	n, err := io.Copy(io.Discard, rest)
	Expect(err).To(HaveOccurred())
	Expect(n).To(BeNumerically("<", longBytes-block))
}
