package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// killProcesses kills, from the node, what runs in a container: from within, no
// signal ends its first process.
const killProcesses = `for p in /proc/[0-9]*; do if grep -q %s $p/cgroup; then kill -KILL ${p#/proc/} && found=yes; fi; done; [ "$found" ]`

// killContainer kills all processes of a container at once, without a word to
// them, as the kernel does when memory runs out. The kubelet starts it again.
func killContainer(ctx context.Context, key client.ObjectKey, container string) {
	GinkgoHelper()
	pod := &corev1.Pod{}
	Expect(admin.Get(ctx, key, pod)).To(Succeed())
	var id string
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == container {
			_, id, _ = strings.Cut(status.ContainerID, "://")
		}
	}
	Expect(id).NotTo(BeEmpty(), "container %s of pod %s doesn't run", container, key)

	killer := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, GenerateName: "e2e-kill-"}}
	killer.Spec = corev1.PodSpec{
		NodeName: pod.Spec.NodeName, HostPID: true, RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name: "kill", Image: image("sandbox"), ImagePullPolicy: corev1.PullIfNotPresent,
			Command:         []string{"bash", "-c", fmt.Sprintf(killProcesses, id)},
			SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true), RunAsUser: ptr.To[int64](0)},
		}},
	}
	Expect(admin.Create(ctx, killer)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(client.IgnoreNotFound(admin.Delete(ctx, killer, client.GracePeriodSeconds(0)))).To(Succeed())
	}, NodeTimeout(cleanUpTimeout))
	Expect(admin.WaitUntil(ctx, killer, &corev1.PodList{}, func() bool {
		return killer.Status.Phase == corev1.PodSucceeded || killer.Status.Phase == corev1.PodFailed
	})).To(Succeed())
	Expect(killer.Status.Phase).To(Equal(corev1.PodSucceeded), "nothing was found to be killed")
}
