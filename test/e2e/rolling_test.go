package e2e

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/session"
)

const (
	rollSessions = 10
	rollCommands = 50
	rollUploads  = 50
	uploadBytes  = 64 << 10
	// wellTime is how soon after a disturbance everything is to be well.
	wellTime = 15 * time.Second
	// callTime is what a command may take that waits for a roll-out.
	callTime = 150 * time.Second
)

var gatewayService = client.ObjectKey{Namespace: cluster.SystemNamespace, Name: "berth-gateway"}

var _ = Describe("The gateway's replicas behind a load balancer without affinity", Serial, func() {
	It("are rolled in the midst of calls, and each of these ends with its right answer", func(ctx context.Context) {
		c := newCrowd(ctx)
		exits := gatewayExits(ctx)
		before := componentPods(ctx, "berth-gateway")
		Expect(len(before)).To(BeNumerically(">=", 2), "replicas of the gateway")
		c.begin(ctx, rollCommands, rollUploads)

		// Calls that begin meanwhile go on, too.
		rolling, rolled := context.WithCancel(ctx)
		defer rolled()
		var others sync.WaitGroup
		var calls int
		var failed []error
		others.Go(func() {
			for i := 0; rolling.Err() == nil; i++ {
				if _, err := c.sessions[i%rollSessions].ListFiles(ctx, ".", nil); err != nil {
					failed = append(failed, err)
				}
				calls++
			}
		})
		rollGateway(ctx)
		rolled()
		others.Wait()
		Expect(failed).To(BeEmpty(), "of %d calls that began during the roll-out", calls)
		Expect(componentPods(ctx, "berth-gateway").Intersection(before)).To(BeEmpty(), "replicas of before")

		c.release(ctx)
		well := time.Now()
		for i, end := range c.commands {
			Expect(end.err).NotTo(HaveOccurred(), "command %d", i)
			Expect(end.result.Stdout).To(Equal(fmt.Sprintf("done %d\n", i)), "command %d: %+v", i, end.result)
			Expect(end.result.Notice).To(BeEmpty(), "command %d", i)
		}
		for i, end := range c.uploads {
			Expect(end.err).NotTo(HaveOccurred(), "upload %d", i)
			c.uploadIsThere(ctx, i)
		}
		times := c.ran(ctx)
		Expect(times).To(HaveLen(rollCommands))
		Expect(times).To(HaveEach(1), "how often each command ran")
		Expect(time.Since(well)).To(BeNumerically("<", wellTime))
		Expect(c.balancer.Failed()).To(BeEmpty(), "calls that broke")
		Expect(exits()).To(And(HaveLen(len(before)), HaveEach(BeZero())), "how the old replicas' processes ended")
	}, SpecTimeout(specTimeout))

	It("lose only a killed one's own calls, and run none twice", func(ctx context.Context) {
		c := newCrowd(ctx)
		c.begin(ctx, 2*rollSessions, rollSessions)
		pods, err := admin.ReadyPods(ctx, gatewayService)
		Expect(err).NotTo(HaveOccurred())
		victim := pods[0]
		endpoint := fmt.Sprintf("%s:%d", victim.Status.PodIP, cluster.GatewayPort)

		DeferCleanup(func(ctx context.Context) { waitRollout(ctx, "berth-gateway") }, NodeTimeout(rolloutTimeout))
		killContainer(ctx, client.ObjectKeyFromObject(&victim), "gateway")
		killed := time.Now()
		c.eachSession(func(s *session.Session, _ string) error { _, err := s.ListFiles(ctx, ".", nil); return err })
		Expect(time.Since(killed)).To(BeNumerically("<", wellTime), "until all sessions answered again")

		c.release(ctx)
		times := c.ran(ctx)
		broke := 0
		for i, end := range c.commands {
			if end.err != nil {
				broke++
				// By the load balancer, or by the end of an answer whose headers had left.
				Expect(end.err.Error()).To(Or(ContainSubstring("Bad Gateway"), ContainSubstring("terminated without response")), "command %d", i)
				Expect(times[fmt.Sprint(i)]).To(BeZero(), "command %d, whose caller was told that it failed", i)
				continue
			}
			Expect(end.result.Stdout).To(Equal(fmt.Sprintf("done %d\n", i)), "command %d: %+v", i, end.result)
			Expect(times[fmt.Sprint(i)]).To(Equal(1), "command %d", i)
		}
		for i, end := range c.uploads {
			if end.err != nil {
				broke++
				continue
			}
			c.uploadIsThere(ctx, i)
		}
		Expect(c.balancer.Failed()).To(And(HaveLen(broke), HaveEach(HaveField("Endpoint", endpoint))), "calls that broke are the killed replica's")
		Expect(broke).To(And(BeNumerically(">", 0), BeNumerically("<", len(c.commands)+len(c.uploads))))
	}, SpecTimeout(specTimeout))
})

// rollGateway replaces all replicas of the gateway, as `kubectl rollout restart` does.
func rollGateway(ctx context.Context) {
	GinkgoHelper()
	deployment := &appsv1.Deployment{}
	Expect(admin.Get(ctx, gatewayService, deployment)).To(Succeed())
	old := deployment.DeepCopy()
	if deployment.Spec.Template.Annotations == nil {
		deployment.Spec.Template.Annotations = map[string]string{}
	}
	deployment.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = time.Now().Format(time.RFC3339Nano)
	Expect(admin.Patch(ctx, deployment, client.MergeFrom(old))).To(Succeed())
	waitRollout(ctx, "berth-gateway")
}

// gatewayExits notes how the gateway's processes end from now on. The function it
// gives waits until there are no more pods than replicas, and tells the exit codes.
func gatewayExits(ctx context.Context) func() map[string]int32 {
	GinkgoHelper()
	w, err := admin.Watch(ctx, &corev1.PodList{}, client.InNamespace(cluster.SystemNamespace), client.MatchingLabels{cluster.NameLabel: "berth-gateway"})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	return func() map[string]int32 {
		codes := map[string]int32{}
		leaving := sets.New[string]()
		pods := &corev1.PodList{}
		Expect(admin.List(ctx, pods, client.InNamespace(cluster.SystemNamespace), client.MatchingLabels{cluster.NameLabel: "berth-gateway"})).To(Succeed())
		for _, pod := range pods.Items {
			if pod.DeletionTimestamp != nil {
				leaving.Insert(pod.Name)
			}
		}
		for leaving.Len() > 0 || len(codes) == 0 {
			select {
			case event, open := <-w.ResultChan():
				Expect(open).To(BeTrue(), "the watch ended; it saw %v", codes)
				pod := event.Object.(*corev1.Pod)
				for _, status := range pod.Status.ContainerStatuses {
					if status.State.Terminated != nil {
						codes[pod.Name] = status.State.Terminated.ExitCode
						leaving.Delete(pod.Name)
					}
				}
			case <-ctx.Done():
				Fail(fmt.Sprintf("replicas %v don't end: %v", leaving, codes))
			}
		}
		return codes
	}
}
