package pod

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/api/v1alpha1"
)

const (
	berthPrefix = "berth.dev/"
	envPrefix   = "BERTH_"
)

// Validate says why no pod can be made from the template, naming each field.
func Validate(template *v1alpha1.SandboxTemplate, options Options) field.ErrorList {
	podTemplate := &template.Spec.PodTemplate
	root := field.NewPath("spec", "podTemplate")
	specPath := root.Child("spec")

	var errs field.ErrorList
	errs = append(errs, validateMetadata(podTemplate.Labels, root.Child("metadata", "labels"))...)
	errs = append(errs, validateMetadata(podTemplate.Annotations, root.Child("metadata", "annotations"))...)
	errs = append(errs, validateSession(&podTemplate.Spec, specPath)...)
	errs = append(errs, validateContainers(&podTemplate.Spec, specPath)...)
	errs = append(errs, validateVolumes(&podTemplate.Spec, specPath.Child("volumes"))...)
	errs = append(errs, validatePod(&podTemplate.Spec, specPath)...)
	if !options.AllowHostAccess {
		errs = append(errs, validateHost(&podTemplate.Spec, specPath)...)
	}
	if sessionContainer(&podTemplate.Spec) == nil {
		return errs
	}
	return append(errs, validateRestricted(template, specPath, options)...)
}

func validateMetadata(entries map[string]string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if strings.HasPrefix(key, berthPrefix) {
			errs = append(errs, field.Forbidden(at.Key(key), "the prefix "+berthPrefix+" is the controller's"))
		}
	}
	return errs
}

func validateSession(spec *corev1.PodSpec, at *field.Path) field.ErrorList {
	index := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == v1alpha1.SessionContainerName })
	if index < 0 {
		return field.ErrorList{field.Required(at.Child("containers"), fmt.Sprintf("one container must be named %q: it is the session's", v1alpha1.SessionContainerName))}
	}
	container, containerPath := &spec.Containers[index], at.Child("containers").Index(index)
	var errs field.ErrorList
	if container.Image == "" {
		errs = append(errs, field.Required(containerPath.Child("image"), "the session's container needs an image"))
	}
	if len(container.Command) > 0 {
		errs = append(errs, field.Forbidden(containerPath.Child("command"), "the agent is PID 1 of the session's container"))
	}
	if len(container.Args) > 0 {
		errs = append(errs, field.Forbidden(containerPath.Child("args"), "the agent is PID 1 of the session's container"))
	}
	for i, mount := range container.VolumeMounts {
		if within(mount.MountPath, agentPath) || path.Clean(mount.MountPath) == workspacePath {
			errs = append(errs, field.Forbidden(containerPath.Child("volumeMounts").Index(i).Child("mountPath"), mount.MountPath+" is mounted by the controller"))
		}
	}
	return errs
}

func validateContainers(spec *corev1.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	check := func(containers []corev1.Container, listPath *field.Path) {
		for i := range containers {
			container, containerPath := &containers[i], listPath.Index(i)
			for j, variable := range container.Env {
				if strings.HasPrefix(variable.Name, envPrefix) {
					errs = append(errs, field.Forbidden(containerPath.Child("env").Index(j).Child("name"), "names that begin with "+envPrefix+" are the agent's"))
				}
			}
			for j, mount := range container.VolumeMounts {
				if mount.Name == agentVolume {
					errs = append(errs, field.Forbidden(containerPath.Child("volumeMounts").Index(j).Child("name"), agentVolume+" is mounted by the controller only"))
				}
			}
			if container.Name == installContainer {
				errs = append(errs, field.Forbidden(containerPath.Child("name"), installContainer+" is the controller's"))
			}
			if security := container.SecurityContext; security != nil {
				errs = append(errs, validateSeccomp(security.SeccompProfile, containerPath.Child("securityContext", "seccompProfile", "type"))...)
			}
		}
	}
	check(spec.InitContainers, at.Child("initContainers"))
	check(spec.Containers, at.Child("containers"))
	return errs
}

func validateSeccomp(profile *corev1.SeccompProfile, at *field.Path) field.ErrorList {
	if profile == nil || profile.Type == corev1.SeccompProfileTypeRuntimeDefault {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, profile.Type, []corev1.SeccompProfileType{corev1.SeccompProfileTypeRuntimeDefault})}
}

func validateVolumes(spec *corev1.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range spec.Volumes {
		volume := &spec.Volumes[i]
		if slices.Contains([]string{workspaceVolume, tmpVolume, agentVolume}, volume.Name) {
			errs = append(errs, field.Forbidden(at.Index(i).Child("name"), volume.Name+" is a volume that the controller adds"))
		}
		if volume.Projected == nil {
			continue
		}
		for j, source := range volume.Projected.Sources {
			if source.ServiceAccountToken != nil {
				errs = append(errs, field.Forbidden(at.Index(i).Child("projected", "sources").Index(j).Child("serviceAccountToken"), "a session's pod holds no service-account token"))
			}
		}
	}
	return errs
}

func validatePod(spec *corev1.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(at.Child("ephemeralContainers"), "a new pod can't have ephemeral containers"))
	}
	if spec.OS != nil && spec.OS.Name != corev1.Linux {
		errs = append(errs, field.NotSupported(at.Child("os", "name"), spec.OS.Name, []corev1.OSName{corev1.Linux}))
	}
	if spec.SecurityContext != nil {
		errs = append(errs, validateSeccomp(spec.SecurityContext.SeccompProfile, at.Child("securityContext", "seccompProfile", "type"))...)
	}
	return errs
}

// validateHost refuses what reaches past the pod into its node.
func validateHost(spec *corev1.PodSpec, at *field.Path) field.ErrorList {
	const how = "needs berth-controller --allow-host-access"
	var errs field.ErrorList
	refuse := func(asked bool, child *field.Path) {
		if asked {
			errs = append(errs, field.Forbidden(child, how))
		}
	}
	refuse(spec.HostNetwork, at.Child("hostNetwork"))
	refuse(spec.HostPID, at.Child("hostPID"))
	refuse(spec.HostIPC, at.Child("hostIPC"))
	refuse(spec.ShareProcessNamespace != nil && *spec.ShareProcessNamespace, at.Child("shareProcessNamespace"))
	for i := range spec.Volumes {
		refuse(spec.Volumes[i].HostPath != nil, at.Child("volumes").Index(i).Child("hostPath"))
	}
	ports := func(containers []corev1.Container, listPath *field.Path) {
		for i := range containers {
			for j := range containers[i].Ports {
				refuse(containers[i].Ports[j].HostPort != 0, listPath.Index(i).Child("ports").Index(j).Child("hostPort"))
			}
		}
	}
	ports(spec.InitContainers, at.Child("initContainers"))
	ports(spec.Containers, at.Child("containers"))
	return errs
}
