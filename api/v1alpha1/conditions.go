package v1alpha1

// Condition types.
const (
	// ConditionReady is true while calls are served (Sandbox) or sandboxes can be
	// made (SandboxTemplate).
	ConditionReady = "Ready"
	// ConditionSuspended is true while a sandbox has no pod by wish.
	ConditionSuspended = "Suspended"
	// ConditionReconciling is true while the controller works towards Ready (kstatus).
	ConditionReconciling = "Reconciling"
	// ConditionStalled is true while only a change from outside helps (kstatus).
	ConditionStalled = "Stalled"
)

// Reasons of a Sandbox's conditions.
const (
	// ReasonReady: the pod is ready and its agent answers.
	ReasonReady = "Ready"
	// ReasonPodPending: the pod was created and is on its way.
	ReasonPodPending = "PodPending"
	// ReasonUnschedulable: no node takes the pod.
	ReasonUnschedulable = "Unschedulable"
	// ReasonImagePullBackOff: an image of the pod can't be pulled.
	ReasonImagePullBackOff = "ImagePullBackOff"
	// ReasonCreateContainerError: the runtime refused a container of the pod.
	ReasonCreateContainerError = "CreateContainerError"
	// ReasonCrashLoopBackOff: a container of the pod ends again and again.
	ReasonCrashLoopBackOff = "CrashLoopBackOff"
	// ReasonOOMKilled: the pod's memory limit was exceeded and the container is restarting.
	ReasonOOMKilled = "OOMKilled"
	// ReasonEvicted: the kubelet evicted the pod; it is being replaced.
	ReasonEvicted = "Evicted"
	// ReasonPodFailed: the pod ended; it is being replaced.
	ReasonPodFailed = "PodFailed"
	// ReasonPodTerminating: the pod is being deleted; it is being replaced.
	ReasonPodTerminating = "PodTerminating"
	// ReasonNodeLost: the pod's node does not report; the pod's state is unknown.
	ReasonNodeLost = "NodeLost"
	// ReasonNoShell: the image has no shell that the agent can use.
	ReasonNoShell = "NoShell"
	// ReasonAgentUnreachable: the container runs and its agent does not answer.
	ReasonAgentUnreachable = "AgentUnreachable"
	// ReasonQuotaExceeded: a quota of the namespace leaves no room for the pod.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonPodForbidden: the API server refused the pod.
	ReasonPodForbidden = "PodForbidden"
	// ReasonTemplateNotFound: there is no SandboxTemplate of that name.
	ReasonTemplateNotFound = "TemplateNotFound"
	// ReasonTemplateInvalid: no pod can be made from the template.
	ReasonTemplateInvalid = "TemplateInvalid"
	// ReasonSuspended: the sandbox was suspended by its operatingMode.
	ReasonSuspended = "Suspended"
	// ReasonExpired: maxLifetime or startDeadline has passed; the sandbox is being deleted.
	ReasonExpired = "Expired"
	// ReasonNameConflict: a pod that is not this sandbox's has its pod's name.
	ReasonNameConflict = "NameConflict"
	// ReasonDeleting: the sandbox is being deleted.
	ReasonDeleting = "Deleting"
	// ReasonBackOff: pods ended again and again; the controller gave up replacing them.
	ReasonBackOff = "BackOff"
)

// Reasons of a SandboxTemplate's conditions.
const (
	// ReasonAccepted: sandboxes can be made from the template.
	ReasonAccepted = "Accepted"
)
