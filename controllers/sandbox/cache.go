package sandbox

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
)

// CacheByObject is how pods and Sandboxes are kept in memory.
//
// Pods are watched without a selector. With one, a pod whose label somebody takes
// away would look deleted and get a second one beside it, a pod of another's that
// has our name would be invisible, and the read-your-writes client would wait for
// ever for a write that its cache never shows. Instead each pod is cut down to
// what is read of it, and one that no Sandbox controls to its bare identity.
// What is cut here must never be written back: pods are created and deleted, not
// updated, and a Sandbox's status is written by merge patch.
func CacheByObject() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Pod{}:       {Transform: trimPod},
		&v1alpha1.Sandbox{}: {Transform: trimSandbox},
	}
}

func trimPod(o any) (any, error) {
	full, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	trimmed := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: full.Namespace, Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion,
	}}
	if OwnerOf(full) == nil {
		return trimmed, nil
	}
	trimmed.ObjectMeta = full.ObjectMeta
	trimmed.ManagedFields, trimmed.Labels, trimmed.Annotations = nil, nil, nil
	if uid, ok := full.Labels[v1alpha1.LabelSandboxUID]; ok {
		trimmed.Labels = map[string]string{v1alpha1.LabelSandboxUID: uid}
	}
	for _, key := range []string{v1alpha1.AnnotationKeyID, v1alpha1.AnnotationPodGeneration} {
		if value, ok := full.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&trimmed.ObjectMeta, key, value)
		}
	}
	trimmed.Spec.NodeName = full.Spec.NodeName
	trimmed.Status = corev1.PodStatus{
		Phase: full.Status.Phase, Reason: full.Status.Reason, Message: full.Status.Message, PodIP: full.Status.PodIP,
		Conditions:            full.Status.Conditions,
		InitContainerStatuses: trimContainers(full.Status.InitContainerStatuses),
		ContainerStatuses:     trimContainers(full.Status.ContainerStatuses),
	}
	return trimmed, nil
}

func trimContainers(full []corev1.ContainerStatus) []corev1.ContainerStatus {
	var trimmed []corev1.ContainerStatus
	for i := range full {
		trimmed = append(trimmed, corev1.ContainerStatus{
			Name: full[i].Name, Ready: full[i].Ready, State: full[i].State, LastTerminationState: full[i].LastTerminationState,
		})
	}
	return trimmed
}

// trimSandbox drops what the controller never reads. The session's environment is
// the largest of it, and may hold what should not lie about in memory.
func trimSandbox(o any) (any, error) {
	full, ok := o.(*v1alpha1.Sandbox)
	if !ok {
		return o, nil
	}
	full.ManagedFields = nil
	full.Spec.Env = nil
	delete(full.Annotations, corev1.LastAppliedConfigAnnotation)
	return full, nil
}
