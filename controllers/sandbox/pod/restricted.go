package pod

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/berth-dev/berth/api/v1alpha1"
)

var restrictedChecks = sync.OnceValues(func() (policy.Evaluator, error) {
	return policy.NewEvaluator(policy.DefaultChecks(), nil)
})

// validateRestricted asks Kubernetes' own checks whether the pod that would be
// made passes Pod Security "restricted", so that the rules can't drift from what
// a restricted namespace admits. Build only fills what the template left unsaid,
// so what is found here was asked for.
func validateRestricted(template *v1alpha1.SandboxTemplate, at *field.Path, options Options) field.ErrorList {
	example := &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Name: "example", Namespace: template.Namespace}}
	built := Build(example, template, 1, Keys{}, options)
	withoutHostAccess(&built.Spec)

	evaluator, err := restrictedChecks()
	if err != nil {
		return field.ErrorList{field.InternalError(at, err)}
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	var errs field.ErrorList
	for _, result := range evaluator.EvaluatePod(level, &built.ObjectMeta, &built.Spec) {
		if result.Allowed {
			continue
		}
		detail := result.ForbiddenReason
		if result.ForbiddenDetail != "" {
			detail += ": " + result.ForbiddenDetail
		}
		errs = append(errs, field.Forbidden(at, detail))
	}
	return errs
}

// withoutHostAccess takes out what validateHost judges: it gave a better message,
// or the flag allows it.
func withoutHostAccess(spec *corev1.PodSpec) {
	spec.HostNetwork, spec.HostPID, spec.HostIPC = false, false, false
	for i := range spec.Volumes {
		if spec.Volumes[i].HostPath != nil {
			spec.Volumes[i].VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
		}
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			for j := range containers[i].Ports {
				containers[i].Ports[j].HostPort = 0
			}
		}
	}
}
