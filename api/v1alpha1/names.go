package v1alpha1

// Names that controller, gateway and manifests share.
const (
	// DefaultTemplateName is the template of a Sandbox that names none.
	DefaultTemplateName = "default"

	// SessionContainerName is the container of a pod template that is the session's.
	SessionContainerName = "sandbox"

	// LabelSandbox, on a pod, is the name of its Sandbox.
	LabelSandbox = "berth.dev/sandbox"
	// LabelSandboxUID, on a pod, is the UID of its Sandbox.
	LabelSandboxUID = "berth.dev/sandbox-uid"
	// LabelTemplate, on a pod, is the name of the template it was made from.
	LabelTemplate = "berth.dev/template"
	// LabelEgress, on a pod, is its egress class; policies select on it.
	LabelEgress = "berth.dev/egress"
	// AnnotationKeyID, on a pod, is the newest signing key at its birth.
	AnnotationKeyID = "berth.dev/key-id"
	// AnnotationPodGeneration, on a pod, is the status.podGeneration that it was made for.
	AnnotationPodGeneration = "berth.dev/pod-generation"

	// LabelManagedBy and ManagedByBerth mark every object that Berth makes.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedByBerth is the value of LabelManagedBy.
	ManagedByBerth = "berth"
	// LabelComponent says what a Berth object is for.
	LabelComponent = "app.kubernetes.io/component"
	// ComponentSandbox is the value of LabelComponent on session pods.
	ComponentSandbox = "sandbox"
	// LabelCreatedBy, on a Sandbox, says which part of Berth created it.
	LabelCreatedBy = "app.kubernetes.io/created-by"
	// CreatedByGateway is the value of LabelCreatedBy on the gateway's Sandboxes.
	CreatedByGateway = "berth-gateway"
)

// SubresourceSession is the virtual sub-resource of sandboxes that authorizers are
// asked about for callers of the gateway: create for tools, get for reads, delete
// for the end of a session.
const SubresourceSession = "session"
