package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/session"
)

// restart kills every pod of a component of Berth at once, without grace, and
// waits until as many others are ready.
func restart(ctx context.Context, component string) {
	GinkgoHelper()
	name := "berth-" + component
	before := componentPods(ctx, name)
	Expect(admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(cluster.SystemNamespace),
		client.MatchingLabels{cluster.NameLabel: name}, client.GracePeriodSeconds(0))).To(Succeed())
	Eventually(func() sets.Set[types.UID] { return componentPods(ctx, name).Difference(before) }).
		WithTimeout(rolloutTimeout).WithPolling(interval).Should(HaveLen(len(before)), "new pods of %s that are ready", name)
}

// componentPods gives the pods of a component of Berth that are ready.
func componentPods(ctx context.Context, name string) sets.Set[types.UID] {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(admin.List(ctx, pods, client.InNamespace(cluster.SystemNamespace), client.MatchingLabels{cluster.NameLabel: name})).To(Succeed())
	uids := sets.New[types.UID]()
	for i := range pods.Items {
		if cluster.IsReady(&pods.Items[i]) {
			uids.Insert(pods.Items[i].UID)
		}
	}
	return uids
}

func waitRollout(ctx context.Context, deployment string) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, rolloutTimeout)
	defer cancel()
	Expect(admin.WaitForRollout(ctx, cluster.SystemNamespace, deployment)).To(Succeed())
}

const makeFile = "head -c 100000 /dev/urandom > file.bin && sha256sum < file.bin | cut -d' ' -f1"

func sum(content []byte) string {
	hash := sha256.Sum256(content)
	return hex.EncodeToString(hash[:])
}

var _ = Describe("Any replica of the gateway", func() {
	It("reads what another one exported, in another MCP session of the same caller", func(ctx context.Context) {
		t := newTenant(ctx)
		Expect(len(t.gateways)).To(BeNumerically(">=", 2), "replicas of the gateway")
		exporting := connect(ctx, t.targetAt(0, "s"))
		want := run(ctx, exporting, makeFile)
		artifact, err := exporting.Export(ctx, "file.bin")
		Expect(err).NotTo(HaveOccurred())
		Expect(exporting.Close()).To(Succeed())

		content, err := connect(ctx, t.targetAt(1, "s")).Read(ctx, artifact.URI)
		Expect(err).NotTo(HaveOccurred())
		Expect(sum(content) + "\n").To(Equal(want))
		Expect(artifact.SHA256 + "\n").To(Equal(want))
	}, SpecTimeout(specTimeout))

	It("reads for the owner without a session's header", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("s"))
		run(ctx, s, makeFile)
		artifact, err := s.Export(ctx, "file.bin")
		Expect(err).NotTo(HaveOccurred())
		noHeader := t.target("")
		content, err := connect(ctx, noHeader).Read(ctx, artifact.URI)
		Expect(err).NotTo(HaveOccurred(), "the owner needs no session header")
		Expect(sum(content)).To(Equal(artifact.SHA256))
	}, SpecTimeout(specTimeout))
})

var _ = Describe("A restart of all replicas of the gateway", Serial, func() {
	It("between two calls loses nothing of a session", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("s"))
		want := run(ctx, s, "kept=yes; cd /tmp; cd /workspace; "+makeFile)
		artifact, err := s.Export(ctx, "file.bin")
		Expect(err).NotTo(HaveOccurred())

		restart(ctx, "gateway")
		t.gateways = forwardGateways(ctx)
		s = connect(ctx, t.target("s"))
		result, err := s.Bash(ctx, `echo "$kept $OLDPWD"`)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Stdout).To(Equal("yes /tmp\n"))
		Expect(result.Notice).To(BeEmpty(), "nothing was lost")
		for replica := range t.gateways {
			content, err := connect(ctx, t.targetAt(replica, "")).Read(ctx, artifact.URI)
			Expect(err).NotTo(HaveOccurred())
			Expect(sum(content) + "\n").To(Equal(want))
			answer, err := session.Get(ctx, t.targetAt(replica, "s"), artifact.URI, nil)
			Expect(err).NotTo(HaveOccurred())
			content, err = io.ReadAll(answer.Body)
			Expect(errors.Join(err, answer.Body.Close())).To(Succeed())
			Expect(sum(content) + "\n").To(Equal(want))
		}
	}, SpecTimeout(specTimeout))
})

var _ = Describe("A controller that is killed", Serial, func() {
	It("while Sandboxes start leaves each with one pod, and Ready", func(ctx context.Context) {
		t := newTenant(ctx)
		pods := t.collect(ctx, &corev1.PodList{})
		names := sessionNames("s", 5)
		for _, id := range names {
			t.newSandbox(ctx, id, v1alpha1.DefaultTemplateName)
		}
		restart(ctx, "controller")
		for _, id := range names {
			t.waitReady(ctx, id)
			Expect(t.sessionPods(ctx, id)).To(HaveLen(1), "pods of %s", id)
		}
		Expect(pods()).To(HaveLen(len(names)), "pods that there ever were")
	}, SpecTimeout(specTimeout))

	It("doesn't disturb live sessions, and a pod that dies meanwhile is replaced after", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("s"))
		run(ctx, s, "kept=yes")
		other := connect(ctx, t.target("other"))
		run(ctx, other, "true")

		scaleController(ctx, 0)
		pod := t.podOf(ctx, "other")
		Expect(admin.Delete(ctx, podNamed(pod), client.GracePeriodSeconds(0))).To(Succeed())
		Expect(run(ctx, s, `echo "$kept"`)).To(Equal("yes\n"))
		scaleController(ctx, controllerReplicas)

		result, err := other.Bash(ctx, "true")
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Notice).To(ContainSubstring("pod was replaced"))
	}, SpecTimeout(specTimeout))
})
