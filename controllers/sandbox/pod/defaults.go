package pod

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-dev/berth/api/v1alpha1"
)

// restrictPod fills what a template left unsaid with what Pod Security
// "restricted" asks for.
func restrictPod(spec *corev1.PodSpec) {
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	security := spec.SecurityContext
	defaultTo(&security.RunAsNonRoot, true)
	defaultTo[int64](&security.RunAsUser, defaultID)
	defaultTo[int64](&security.RunAsGroup, defaultID)
	defaultTo[int64](&security.FSGroup, defaultID)
	if security.SeccompProfile == nil {
		security.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
}

// restrictContainer does the same for any container, sidecars too.
func restrictContainer(container *corev1.Container) {
	if container.SecurityContext == nil {
		container.SecurityContext = &corev1.SecurityContext{}
	}
	security := container.SecurityContext
	defaultTo(&security.AllowPrivilegeEscalation, false)
	if security.Capabilities == nil {
		security.Capabilities = &corev1.Capabilities{}
	}
	if !slices.Contains(security.Capabilities.Drop, "ALL") {
		security.Capabilities.Drop = []corev1.Capability{"ALL"}
	}
}

// The defaults of the session's container: enough for a shell and small tools.
func defaultRequests() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
}

func defaultLimits() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("512Mi")}
}

// installResources are what copying one small file takes. They are below the
// session's own, so they don't make the pod any larger.
func installResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("64Mi")},
	}
}

// resources are the template's, replaced by the sandbox's name by name, and then
// defaulted. A default never contradicts what was said: a request is lowered to
// the limit that was asked for, a limit raised to the request.
func resources(template corev1.ResourceRequirements, sandbox *v1alpha1.Resources) corev1.ResourceRequirements {
	merged := *template.DeepCopy()
	if merged.Requests == nil {
		merged.Requests = corev1.ResourceList{}
	}
	if merged.Limits == nil {
		merged.Limits = corev1.ResourceList{}
	}
	if sandbox != nil {
		for name, quantity := range sandbox.Requests {
			merged.Requests[name] = quantity.DeepCopy()
		}
		for name, quantity := range sandbox.Limits {
			merged.Limits[name] = quantity.DeepCopy()
		}
	}
	for name, fallback := range defaultRequests() {
		if _, said := merged.Requests[name]; said {
			continue
		}
		if limit, said := merged.Limits[name]; said && limit.Cmp(fallback) < 0 {
			fallback = limit.DeepCopy()
		}
		merged.Requests[name] = fallback
	}
	for name, fallback := range defaultLimits() {
		if _, said := merged.Limits[name]; said {
			continue
		}
		if request := merged.Requests[name]; request.Cmp(fallback) > 0 {
			fallback = request.DeepCopy()
		}
		merged.Limits[name] = fallback
	}
	return merged
}

// defaultTo sets what the template left out.
func defaultTo[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// within tells whether the path is the directory or below it.
func within(name, directory string) bool {
	name = path.Clean(name)
	return name == directory || strings.HasPrefix(name, strings.TrimSuffix(directory, "/")+"/")
}
