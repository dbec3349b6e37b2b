package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SandboxTemplateSpec says what the pods of its sandboxes look like.
type SandboxTemplateSpec struct {
	// podTemplate is the pod. The container named "sandbox" is the session's; the
	// agent is PID 1 in it, so its command and args must be empty and the
	// image's entry point does not run. What is security-relevant is forced,
	// what is silent is defaulted, all else is taken as it is.
	// +required
	PodTemplate corev1.PodTemplateSpec `json:"podTemplate,omitzero"` //nolint:kubeapilinter // A foreign type: it carries no validation that would rule out {}; the controller says TemplateInvalid.

	// workspace is what is mounted at /workspace. Without it: an emptyDir.
	// +optional
	Workspace *Workspace `json:"workspace,omitempty"`

	// lifecycle is how long sandboxes live, and what keeps them from being idle.
	// +optional
	Lifecycle *LifecycleDefaults `json:"lifecycle,omitempty"`

	// network is what the session may reach. Without it: nothing.
	// +optional
	Network *Network `json:"network,omitempty"`

	// limits bound what one call may take, and what calls leave behind. Without
	// them the built-in defaults hold.
	// +optional
	Limits *Limits `json:"limits,omitempty"`

	// files say what file tools reach. Without it: the workspace.
	// +optional
	Files *Files `json:"files,omitempty"`

	// artifacts say where exported files are kept. Without it: in the pod, for
	// 5 minutes.
	// +optional
	Artifacts *Artifacts `json:"artifacts,omitempty"`
}

// Workspace is the session's /workspace.
//
// +kubebuilder:validation:MinProperties=1
type Workspace struct {
	// emptyDir is gone with the pod.
	// +optional
	EmptyDir *EmptyDirWorkspace `json:"emptyDir,omitempty"`
}

// EmptyDirWorkspace lives as long as the pod.
//
// +kubebuilder:validation:MinProperties=1
type EmptyDirWorkspace struct {
	// sizeLimit is where the kubelet evicts the pod for using too much.
	// +optional
	SizeLimit *resource.Quantity `json:"sizeLimit,omitempty"`
}

// LifecycleDefaults apply to sandboxes that leave the field of that name out, or
// have none.
//
// +kubebuilder:validation:MinProperties=1
type LifecycleDefaults struct {
	// maxLifetime is how long after its creation a sandbox is deleted.
	// +optional
	MaxLifetime *Duration `json:"maxLifetime,omitempty"`

	// startDeadline is how long after its creation a sandbox that has never been
	// Ready is deleted.
	// +optional
	StartDeadline *Duration `json:"startDeadline,omitempty"`

	// backgroundIsActivity keeps a session from being idle while one of its
	// background processes runs. Default false: only calls do.
	// +optional
	BackgroundIsActivity *bool `json:"backgroundIsActivity,omitempty"`
}

// EgressClass is what a session may connect to.
//
// +kubebuilder:validation:Enum=None;ClusterDNS;Internet
type EgressClass string

const (
	// EgressNone lets nothing out.
	EgressNone EgressClass = "None"
	// EgressClusterDNS lets name look-ups to the cluster's DNS out.
	EgressClusterDNS EgressClass = "ClusterDNS"
	// EgressInternet lets DNS and all addresses out but private, link-local,
	// shared (100.64.0.0/10) and the cluster's own.
	EgressInternet EgressClass = "Internet"
)

// Network is what the session may reach.
//
// +kubebuilder:validation:MinProperties=1
type Network struct {
	// egress is the class of addresses that are open.
	// +optional
	// +kubebuilder:default=None
	Egress EgressClass `json:"egress,omitempty"`

	// egressRules are opened in addition to the class.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	EgressRules []networkingv1.NetworkPolicyEgressRule `json:"egressRules,omitempty"`
}

// Limits bound what one call may take, and what calls leave behind.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.commandTimeout) || !has(self.maxCommandTimeout) || duration(self.commandTimeout) <= duration(self.maxCommandTimeout)",message="commandTimeout must not exceed maxCommandTimeout"
type Limits struct {
	// commandTimeout is how long a command may run that asks for no time of its
	// own. Default 60s.
	// +optional
	CommandTimeout *Duration `json:"commandTimeout,omitempty"`

	// maxCommandTimeout is the longest time that a command may ask for. Default 5m.
	// +optional
	MaxCommandTimeout *Duration `json:"maxCommandTimeout,omitempty"`

	// outputBytes is how much of each of stdout and stderr a result holds.
	// Default 262144 (256 KiB), at most 4194304 (4 MiB).
	// +optional
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=4194304
	OutputBytes *int64 `json:"outputBytes,omitempty"`

	// artifactBytes is the largest file that can be exported. Default 8388608 (8 MiB).
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1099511627776
	ArtifactBytes *int64 `json:"artifactBytes,omitempty"`

	// artifactTotalBytes is how much disk all exported artifacts take together:
	// copies of files up to 8 MiB, and archives. When it is taken, exports are
	// refused until one expires. Default 1073741824 (1 GiB), lowered as logBytes is.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1099511627776
	ArtifactTotalBytes *int64 `json:"artifactTotalBytes,omitempty"`

	// logBytes is how much disk the logs of all commands take together: the whole
	// of outputs that don't fit their results. Older logs make room for newer
	// ones. Default 1073741824 (1 GiB), but no more than a quarter of what the
	// workspace may hold before the pod is evicted; a larger value is lowered to
	// half of that. A sandbox's status.limits has what is in force.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1099511627776
	LogBytes *int64 `json:"logBytes,omitempty"`

	// uploadBytes is the largest file that can be uploaded, or written by a file
	// tool. No limit by default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1099511627776
	UploadBytes *int64 `json:"uploadBytes,omitempty"`
}

// Files say what file tools reach.
//
// +kubebuilder:validation:MinProperties=1
type Files struct {
	// roots are directories of the session's container that file tools reach
	// besides the workspace, as far as its user may. Exports and uploads stay in
	// the workspace.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Roots []FileRoot `json:"roots,omitempty"`
}

// FileRoot is the absolute path of a directory, written in the shortest way: no
// "." or "..", no double or trailing slash.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="must be an absolute path"
// +kubebuilder:validation:XValidation:rule="self == '/' || !self.matches('//|/$|/[.][.]?(/|$)')",message="must be a path without . or .., and without double or trailing slashes"
// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must not contain control characters"
type FileRoot string

// Artifacts say where exported files are kept.
//
// +kubebuilder:validation:MinProperties=1
type Artifacts struct {
	// store is the name of an object store that the gateway's own configuration
	// defines. Exported files go there, and outlive their sandbox until they
	// expire. Where the gateway has no store of that name, exports fail.
	// +optional
	Store StoreName `json:"store,omitempty"`
}

// StoreName is the name of an artifact store, as the gateway's configuration has
// it.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="must be at most 63 of a-z, 0-9 and -, beginning and ending with a letter or digit"
type StoreName string

// SandboxTemplateStatus is the controller's.
type SandboxTemplateStatus struct {
	// observedGeneration is the generation that this status was computed from,
	// and -1 before the first reconcile.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, always: whether sandboxes can be made from this
	// template, or why not; and Stalled while it needs an edit.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SandboxTemplate says what the pods of its sandboxes look like. Only those who
// may create pods in its namespace may create or change one.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=sbxt,categories=berth
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Image",type=string,priority=1,JSONPath=`.spec.podTemplate.spec.containers[?(@.name=="sandbox")].image`
// +kubebuilder:printcolumn:name="Egress",type=string,priority=1,JSONPath=`.spec.network.egress`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="metadata.name must be at most 63 of a-z, 0-9 and -, beginning and ending with a letter or digit"
type SandboxTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what pods made from this template look like.
	// +required
	Spec SandboxTemplateSpec `json:"spec,omitzero"` //nolint:kubeapilinter // By value as in every Kubernetes kind; a spec without podTemplate is refused.

	// status is what the controller observed.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status SandboxTemplateStatus `json:"status,omitzero"`
}

// SandboxTemplateList is a list of SandboxTemplates.
//
// +kubebuilder:object:root=true
type SandboxTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []SandboxTemplate `json:"items"`
}

// GetConditions gives the conditions, for the packages that compute them.
func (t *SandboxTemplate) GetConditions() []metav1.Condition { return t.Status.Conditions }
