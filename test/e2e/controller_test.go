package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/test/cluster"
)

// controllerReplicas is how many there are of the controller when it is left alone.
const controllerReplicas = 2

// scaleController stops the controller, with 0, until the spec ends or it is
// scaled again. It waits until that many are there, and no others.
func scaleController(ctx context.Context, replicas int32) {
	GinkgoHelper()
	setControllerReplicas(ctx, replicas)
	if replicas == controllerReplicas {
		return
	}
	DeferCleanup(func(ctx context.Context) { setControllerReplicas(ctx, controllerReplicas) }, NodeTimeout(rolloutTimeout))
}

func setControllerReplicas(ctx context.Context, replicas int32) {
	GinkgoHelper()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.SystemNamespace, Name: "berth-controller"}}
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	Expect(admin.SubResource("scale").Update(ctx, deployment, client.WithSubResourceBody(scale))).To(Succeed())
	waitRollout(ctx, deployment.Name)
	if replicas > 0 {
		return
	}
	pods := &corev1.PodList{}
	Expect(admin.List(ctx, pods, client.InNamespace(cluster.SystemNamespace), client.MatchingLabels{cluster.NameLabel: deployment.Name})).To(Succeed())
	for i := range pods.Items {
		Expect(admin.WaitUntilGone(ctx, &pods.Items[i], &corev1.PodList{})).To(Succeed())
	}
}

// podNamed is a pod to delete.
func podNamed(key client.ObjectKey) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}
