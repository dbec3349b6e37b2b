package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OperatingMode is what the user wants of a sandbox.
//
// +kubebuilder:validation:Enum=Running;Suspended
type OperatingMode string

const (
	// OperatingModeRunning asks for a pod.
	OperatingModeRunning OperatingMode = "Running"
	// OperatingModeSuspended asks for no pod until it is set to Running again.
	OperatingModeSuspended OperatingMode = "Suspended"
)

// SandboxSpec is the user's; neither controller nor gateway edits it.
//
// +kubebuilder:validation:XValidation:rule="has(self.templateRef) == has(oldSelf.templateRef) && (!has(self.templateRef) || self.templateRef == oldSelf.templateRef)",message="templateRef is immutable: create another Sandbox to use another template"
// +kubebuilder:validation:XValidation:rule="has(self.owner) == has(oldSelf.owner) && (!has(self.owner) || self.owner == oldSelf.owner)",message="owner is immutable: a session never changes hands"
type SandboxSpec struct {
	// templateRef names the SandboxTemplate, in the same namespace, that the pod
	// is made from. It is immutable.
	// +optional
	// +kubebuilder:default={name: "default"}
	TemplateRef TemplateReference `json:"templateRef,omitzero"`

	// operatingMode is Running, or Suspended to give up the pod until it is set
	// to Running again. Suspending without a persistent workspace loses its files.
	// +optional
	// +kubebuilder:default=Running
	OperatingMode OperatingMode `json:"operatingMode,omitempty"`

	// maxLifetime is how long after its creation the sandbox is deleted,
	// busy or not. Without it the template's applies; without either it lives
	// until it is deleted.
	// +optional
	MaxLifetime *Duration `json:"maxLifetime,omitempty"`

	// startDeadline is how long after its creation the sandbox is deleted if it
	// has never been Ready. Without it the sandbox waits for as long as it takes.
	// +optional
	StartDeadline *Duration `json:"startDeadline,omitempty"`

	// env is given to the session's shell at the first contact with its agent and
	// is never part of the pod. Values are literal. A name that is changed or
	// added reaches the shell of the next pod.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Env []EnvVar `json:"env,omitempty"`

	// resources replaces the requests and limits of the template's session
	// container, name by name. It applies to the next pod.
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	// owner is the authenticated caller whose session this is: for another
	// caller of the gateway the session does not exist. Setting it needs the verb
	// assign on sandboxes/owner, or equality with the requesting user. Empty: any
	// caller who may create sandboxes/session of this name. It is immutable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Owner string `json:"owner,omitempty"`
}

// TemplateReference names a SandboxTemplate in the sandbox's namespace.
type TemplateReference struct {
	// name of the SandboxTemplate.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="must be a DNS-1123 label"
	Name string `json:"name,omitempty"`
}

// EnvVar is one literal variable of the session's environment.
type EnvVar struct {
	// name is a shell identifier. Names that begin with BERTH_ are the agent's.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",message="must be a shell identifier: letters, digits and _, not beginning with a digit"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('BERTH_')",message="must not begin with BERTH_, which is reserved for the agent"
	Name string `json:"name,omitempty"`

	// value is taken as it is: nothing in it is expanded.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=32768
	Value *string `json:"value,omitempty"`
}

// Resources are what the session's container requests and may use.
//
// +kubebuilder:validation:MinProperties=1
type Resources struct {
	// requests by resource name, such as cpu and memory.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`

	// limits by resource name, such as cpu and memory.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
}

// StartKind is how a sandbox got its first pod.
//
// +kubebuilder:validation:Enum=Cold
type StartKind string

// StartCold means that the pod was created for this sandbox.
const StartCold StartKind = "Cold"

// SandboxStatus is the controller's.
type SandboxStatus struct {
	// observedGeneration is the generation that this status was computed from,
	// and -1 before the first reconcile.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, always; and Suspended, Reconciling and Stalled while
	// they are true. The reasons are documented constants.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// podName is the name of the session's pod.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PodName string `json:"podName,omitempty"`

	// podUID is the identity of the one pod that calls are routed to.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PodUID string `json:"podUID,omitempty"`

	// podIP is the address of that pod.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PodIP string `json:"podIP,omitempty"`

	// nodeName is the node of that pod.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	NodeName string `json:"nodeName,omitempty"`

	// keyID names the key that signs requests to that pod's agent.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	KeyID string `json:"keyID,omitempty"`

	// start is how the sandbox started; empty until it has been Ready once.
	// +optional
	Start StartKind `json:"start,omitempty"`

	// podGeneration counts the session's pods: 1, and 1 more for each replacement.
	// +optional
	// +kubebuilder:validation:Minimum=1
	PodGeneration *int64 `json:"podGeneration,omitempty"`

	// podFailures counts the session's pods that ended in a row, none of them
	// after ten minutes of being Ready. The back-off and its limit follow from it;
	// a change of the spec starts it afresh.
	// +optional
	// +kubebuilder:validation:Minimum=0
	PodFailures *int64 `json:"podFailures,omitempty"`

	// lastTermination tells how the previous pod, or the previous run of the
	// session's container, ended.
	// +optional
	LastTermination *Termination `json:"lastTermination,omitempty"`

	// expiresAt is when maxLifetime deletes the sandbox.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`

	// limits are in force for this session.
	// +optional
	Limits *Limits `json:"limits,omitempty"`

	// backgroundIsActivity is in force for this session: while one of its
	// background processes runs, it is not idle.
	// +optional
	BackgroundIsActivity *bool `json:"backgroundIsActivity,omitempty"`

	// fileRoots are in force for this session: what file tools reach besides the
	// workspace.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	FileRoots []FileRoot `json:"fileRoots,omitempty"`

	// artifactStore is in force for this session: where its exports go. Empty:
	// they stay in its pod.
	// +optional
	ArtifactStore StoreName `json:"artifactStore,omitempty"`
}

// Termination is the end of a pod or of its session container.
type Termination struct {
	// reason is a CamelCase word such as OOMKilled, Evicted, Failed or Deleted.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`

	// message says it in words.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// time is when it ended.
	// +required
	Time metav1.Time `json:"time,omitzero"` //nolint:kubeapilinter // A required time: its zero value is left out, and then refused.
}

// Sandbox is one session: a pod of its own, under the session ID as its name.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=sbx,categories=berth
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Template",type=string,priority=1,JSONPath=`.spec.templateRef.name`
// +kubebuilder:printcolumn:name="Mode",type=string,priority=1,JSONPath=`.spec.operatingMode`
// +kubebuilder:printcolumn:name="Pod",type=string,priority=1,JSONPath=`.status.podName`
// +kubebuilder:printcolumn:name="IP",type=string,priority=1,JSONPath=`.status.podIP`
// +kubebuilder:printcolumn:name="Node",type=string,priority=1,JSONPath=`.status.nodeName`
// +kubebuilder:printcolumn:name="Owner",type=string,priority=1,JSONPath=`.spec.owner`
// +kubebuilder:printcolumn:name="Expires",type=string,priority=1,JSONPath=`.status.expiresAt`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="metadata.name is the session ID: at most 63 of a-z, 0-9 and -, beginning and ending with a letter or digit"
type Sandbox struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata; the name is the session ID.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what the user asks for.
	// +optional
	// +kubebuilder:default={templateRef: {name: "default"}}
	Spec SandboxSpec `json:"spec,omitzero"`

	// status is what the controller observed.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status SandboxStatus `json:"status,omitzero"`
}

// SandboxList is a list of Sandboxes.
//
// +kubebuilder:object:root=true
type SandboxList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Sandbox `json:"items"`
}

// GetConditions gives the conditions, for the packages that compute them.
func (s *Sandbox) GetConditions() []metav1.Condition { return s.Status.Conditions }
