package pod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/api/v1alpha1"
)

// DiskBound is how many bytes the workspace of the sandbox's pod may hold before
// the kubelet evicts the pod: the size limit of its emptyDir, or what all
// containers may use of the node's disk, where that is less. Not bounded if
// neither was said.
func DiskBound(sandbox *v1alpha1.Sandbox, template *v1alpha1.SandboxTemplate) (bytes int64, bounded bool) {
	bytes = ephemeralStorage(sandbox, &template.Spec.PodTemplate.Spec)
	workspace := template.Spec.Workspace
	if workspace == nil || workspace.EmptyDir == nil || workspace.EmptyDir.SizeLimit == nil {
		return bytes, bytes > 0
	}
	// A size limit of 0 limits nothing.
	if limit := workspace.EmptyDir.SizeLimit.Value(); limit > 0 && (bytes == 0 || limit < bytes) {
		bytes = limit
	}
	return bytes, bytes > 0
}

// ephemeralStorage adds up the containers' limits, as the kubelet does: one that
// says none adds nothing. 0 is no limit.
func ephemeralStorage(sandbox *v1alpha1.Sandbox, spec *corev1.PodSpec) int64 {
	var total int64
	for i := range spec.Containers {
		container := &spec.Containers[i]
		limits := container.Resources.Limits
		if container.Name == v1alpha1.SessionContainerName {
			limits = resources(container.Resources, sandbox.Spec.Resources).Limits
		}
		if limit, said := limits[corev1.ResourceEphemeralStorage]; said {
			total += limit.Value()
		}
	}
	return total
}
