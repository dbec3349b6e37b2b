package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/test/cluster"
)

// withControllerFlag runs the controller with one more flag until the spec ends.
func withControllerFlag(ctx context.Context, flag string) {
	GinkgoHelper()
	before := editController(ctx, func(args []string) []string { return append(args, flag) })
	DeferCleanup(func(ctx context.Context) {
		editController(ctx, func([]string) []string { return before })
	}, NodeTimeout(rolloutTimeout))
}

// editController changes the controller's arguments, waits until all replicas
// have them, and gives those of before.
func editController(ctx context.Context, edit func(args []string) []string) (before []string) {
	GinkgoHelper()
	deployment := &appsv1.Deployment{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: "berth-controller"}, deployment)).To(Succeed())
	original := deployment.DeepCopy()
	container := &deployment.Spec.Template.Spec.Containers[0]
	before = original.Spec.Template.Spec.Containers[0].Args
	container.Args = edit(container.Args)
	Expect(admin.Patch(ctx, deployment, client.MergeFrom(original))).To(Succeed())
	waitRollout(ctx, deployment.Name)
	return before
}

var _ = Describe("A controller that is told so", Serial, func() {
	// sessionPodWith starts a session under the flag, uses it, and gives its pod.
	sessionPodWith := func(ctx context.Context, flag string) *corev1.Pod {
		GinkgoHelper()
		withControllerFlag(ctx, flag)
		t := newTenant(ctx)
		s := connect(ctx, t.target("s"))
		want := run(ctx, s, makeFile)
		artifact, err := s.Export(ctx, "file.bin")
		Expect(err).NotTo(HaveOccurred())
		Expect(artifact.SHA256 + "\n").To(Equal(want))
		pod := &corev1.Pod{}
		Expect(admin.Get(ctx, t.podOf(ctx, "s"), pod)).To(Succeed())
		return pod
	}

	It("brings the agent by an init container, for clusters without image volumes", func(ctx context.Context) {
		pod := sessionPodWith(ctx, "--agent-injection=init-container")
		Expect(pod.Spec.InitContainers).To(HaveLen(1))
		for _, volume := range pod.Spec.Volumes {
			Expect(volume.Image).To(BeNil(), "volume %s", volume.Name)
		}
	}, SpecTimeout(specTimeout))

	It("puts each session into a user namespace of its own", func(ctx context.Context) {
		Expect(sessionPodWith(ctx, "--host-users=false").Spec.HostUsers).To(HaveValue(BeFalse()))
	}, SpecTimeout(specTimeout))
})
