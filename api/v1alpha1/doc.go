// Package v1alpha1 holds the kinds of the API group berth.dev.
//
// A Sandbox is one session: its name is the session ID and its pod is the
// session's alone. A SandboxTemplate says what that pod looks like; only those
// who may create pods may write one.
//
// The types follow the Kubernetes API conventions: conditions instead of a
// phase, observedGeneration on the object and on each condition, and kstatus
// (Ready from the first reconcile; Reconciling and Stalled only while true).
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package="../applyconfiguration"
// +groupName=berth.dev
package v1alpha1
