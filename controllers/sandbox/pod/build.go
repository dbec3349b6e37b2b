package pod

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/api/v1alpha1"
)

// Injection is how the agent's binary gets into a pod of any image.
type Injection string

const (
	// ImageVolume mounts the agent's image as a volume.
	ImageVolume Injection = "image-volume"
	// InitContainer copies the agent into an emptyDir, for clusters without image volumes.
	InitContainer Injection = "init-container"
)

// Options are the choices of the whole installation.
type Options struct {
	// AgentImage is the image that holds /berth-agent.
	AgentImage string
	// Injection is how the agent gets into the pod.
	Injection Injection
	// AllowHostAccess lets templates ask for host namespaces, host ports, hostPath
	// volumes and a shared process namespace.
	AllowHostAccess bool
	// HostUsers false puts pods into a user namespace of their own, unless they
	// have a runtimeClassName.
	HostUsers bool
}

// Keys are what a pod knows about the keys that sign requests to its agent.
type Keys struct {
	// NewestID is the kid of the key that signs for this pod.
	NewestID string
	// PublicJWKS is a JWK Set, JSON, of all public keys.
	PublicJWKS string
}

const (
	defaultGraceSeconds = 5
	defaultID           = 1000
)

// Build gives the pod of that generation (counted from 1) of the sandbox. The
// template must have passed Validate with the same options.
func Build(sandbox *v1alpha1.Sandbox, template *v1alpha1.SandboxTemplate, generation int64, keys Keys, options Options) *corev1.Pod {
	spec := template.Spec.PodTemplate.Spec.DeepCopy()

	spec.RestartPolicy = corev1.RestartPolicyAlways
	spec.AutomountServiceAccountToken = ptr.To(false)
	spec.EnableServiceLinks = ptr.To(false)
	if spec.TerminationGracePeriodSeconds == nil {
		spec.TerminationGracePeriodSeconds = ptr.To[int64](defaultGraceSeconds)
	}
	if !options.HostUsers && spec.RuntimeClassName == nil {
		spec.HostUsers = ptr.To(false)
	}
	restrictPod(spec)

	session := sessionContainer(spec)
	session.Resources = resources(session.Resources, sandbox.Spec.Resources)
	prepareSession(session, keys)
	addVolumes(spec, template.Spec.Workspace)
	injectAgent(spec, options)
	for i := range spec.InitContainers {
		restrictContainer(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		restrictContainer(&spec.Containers[i])
	}

	return &corev1.Pod{ObjectMeta: objectMeta(sandbox, template, generation, keys), Spec: *spec}
}

func objectMeta(sandbox *v1alpha1.Sandbox, template *v1alpha1.SandboxTemplate, generation int64, keys Keys) metav1.ObjectMeta {
	labels := maps.Clone(template.Spec.PodTemplate.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, map[string]string{
		v1alpha1.LabelManagedBy:  v1alpha1.ManagedByBerth,
		v1alpha1.LabelComponent:  v1alpha1.ComponentSandbox,
		v1alpha1.LabelSandbox:    sandbox.Name,
		v1alpha1.LabelSandboxUID: string(sandbox.UID),
		v1alpha1.LabelTemplate:   template.Name,
		v1alpha1.LabelEgress:     string(Egress(template)),
	})
	annotations := maps.Clone(template.Spec.PodTemplate.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationKeyID] = keys.NewestID
	annotations[v1alpha1.AnnotationPodGeneration] = strconv.FormatInt(generation, 10)
	return metav1.ObjectMeta{
		Name:            Name(sandbox.Name, sandbox.UID, generation),
		Namespace:       sandbox.Namespace,
		Labels:          labels,
		Annotations:     annotations,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(sandbox, v1alpha1.GroupVersion.WithKind("Sandbox"))},
	}
}

// Egress is the template's egress class; without one nothing goes out.
func Egress(template *v1alpha1.SandboxTemplate) v1alpha1.EgressClass {
	if template.Spec.Network == nil || template.Spec.Network.Egress == "" {
		return v1alpha1.EgressNone
	}
	return template.Spec.Network.Egress
}

func sessionContainer(spec *corev1.PodSpec) *corev1.Container {
	for i := range spec.Containers {
		if spec.Containers[i].Name == v1alpha1.SessionContainerName {
			return &spec.Containers[i]
		}
	}
	return nil
}
