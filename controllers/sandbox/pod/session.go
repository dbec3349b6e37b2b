package pod

import (
	"fmt"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/berth-dev/berth/api/v1alpha1"
	agent "github.com/berth-dev/berth/sandbox-agent/client"
)

const (
	workspacePath = "/workspace"
	tmpPath       = "/tmp"
	agentPath     = "/.berth"

	workspaceVolume = "workspace"
	tmpVolume       = "berth-tmp"
	agentVolume     = "berth-agent"

	installContainer = "berth-agent-install"
)

// prepareSession makes the agent PID 1 of the session's container.
func prepareSession(container *corev1.Container, keys Keys) {
	container.Command = []string{agentPath + "/berth-agent", "serve", fmt.Sprintf("--listen=:%d", agent.Port), "--workspace=" + workspacePath}
	container.Args = nil
	container.RestartPolicy, container.RestartPolicyRules = nil, nil
	container.TerminationMessagePath = "" // where the agent says NoShell
	container.ReadinessProbe = &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: agent.HealthPath, Port: intstr.FromInt32(agent.Port),
		}},
		PeriodSeconds:    1,
		TimeoutSeconds:   1,
		FailureThreshold: 3,
	}
	container.LivenessProbe, container.StartupProbe = nil, nil
	if !slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.ContainerPort == agent.Port }) {
		container.Ports = append(container.Ports, corev1.ContainerPort{
			Name: "berth-agent", ContainerPort: agent.Port, Protocol: corev1.ProtocolTCP,
		})
	}
	if !slices.ContainsFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == "HOME" }) {
		container.Env = append(container.Env, corev1.EnvVar{Name: "HOME", Value: workspacePath})
	}
	container.Env = append(container.Env,
		corev1.EnvVar{Name: agent.EnvPodUID, ValueFrom: fieldRef("metadata.uid")},
		corev1.EnvVar{Name: agent.EnvNamespace, ValueFrom: fieldRef("metadata.namespace")},
		corev1.EnvVar{Name: agent.EnvPublicKeys, Value: keys.PublicJWKS},
	)
	if container.SecurityContext == nil {
		container.SecurityContext = &corev1.SecurityContext{}
	}
	defaultTo(&container.SecurityContext.ReadOnlyRootFilesystem, true)
}

func fieldRef(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}
}

// addVolumes mounts the workspace and /tmp into the session's container. A
// template's sidecar may mount the volume "workspace" by its name.
func addVolumes(spec *corev1.PodSpec, workspace *v1alpha1.Workspace) {
	source := &corev1.EmptyDirVolumeSource{}
	if workspace != nil && workspace.EmptyDir != nil {
		source.SizeLimit = workspace.EmptyDir.SizeLimit
	}
	spec.Volumes = append(spec.Volumes, corev1.Volume{
		Name: workspaceVolume, VolumeSource: corev1.VolumeSource{EmptyDir: source},
	})
	container := sessionContainer(spec)
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: workspaceVolume, MountPath: workspacePath})
	if slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return path.Clean(m.MountPath) == tmpPath }) {
		return
	}
	spec.Volumes = append(spec.Volumes, corev1.Volume{
		Name: tmpVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
	})
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: tmpVolume, MountPath: tmpPath})
}

// injectAgent mounts the agent's binary read-only into the session's container.
func injectAgent(spec *corev1.PodSpec, options Options) {
	container := sessionContainer(spec)
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{
		Name: agentVolume, MountPath: agentPath, ReadOnly: true,
	})
	if options.Injection == ImageVolume {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: agentVolume, VolumeSource: corev1.VolumeSource{
			Image: &corev1.ImageVolumeSource{Reference: options.AgentImage, PullPolicy: corev1.PullIfNotPresent},
		}})
		return
	}
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: agentVolume, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{},
	}})
	readOnly := true
	spec.InitContainers = append([]corev1.Container{{
		Name:            installContainer,
		Image:           options.AgentImage,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{"/berth-agent", "install", agentPath},
		Resources:       installResources(),
		SecurityContext: &corev1.SecurityContext{ReadOnlyRootFilesystem: &readOnly},
		VolumeMounts:    []corev1.VolumeMount{{Name: agentVolume, MountPath: agentPath}},
	}}, spec.InitContainers...)
}
