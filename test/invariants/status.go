// Package invariants holds what is true of every status that Berth writes,
// whatever happened before. Integration tests run it after each step.
package invariants

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/api/v1alpha1"
)

var sandboxReasons = []string{
	v1alpha1.ReasonReady, v1alpha1.ReasonPodPending, v1alpha1.ReasonUnschedulable, v1alpha1.ReasonImagePullBackOff,
	v1alpha1.ReasonCreateContainerError, v1alpha1.ReasonCrashLoopBackOff, v1alpha1.ReasonOOMKilled, v1alpha1.ReasonEvicted,
	v1alpha1.ReasonPodFailed, v1alpha1.ReasonPodTerminating, v1alpha1.ReasonNodeLost, v1alpha1.ReasonNoShell,
	v1alpha1.ReasonAgentUnreachable, v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonPodForbidden, v1alpha1.ReasonTemplateNotFound,
	v1alpha1.ReasonTemplateInvalid, v1alpha1.ReasonSuspended, v1alpha1.ReasonExpired, v1alpha1.ReasonNameConflict,
	v1alpha1.ReasonDeleting, v1alpha1.ReasonBackOff,
}

// CheckSandbox says what is wrong with the status of a Sandbox that was reconciled.
func CheckSandbox(sandbox *v1alpha1.Sandbox) error {
	status := &sandbox.Status
	errs := checkConditions(sandbox.ObjectMeta, ptr.Deref(status.ObservedGeneration, -1), status.Conditions, sandboxReasons)
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong((status.PodUID == "") != (status.PodName == ""), "podUID %q and podName %q: want both or none", status.PodUID, status.PodName)
	wrong(status.PodUID == "" && status.PodIP != "", "podIP %q without a pod", status.PodIP)
	wrong(status.PodUID == "" && status.NodeName != "", "nodeName %q without a pod", status.NodeName)
	wrong(status.PodUID == "" && status.KeyID != "", "keyID %q without a pod", status.KeyID)
	wrong(status.PodUID != "" && status.PodGeneration == nil, "a pod without podGeneration")
	ready := find(status.Conditions, v1alpha1.ConditionReady)
	if ready != nil && ready.Status == metav1.ConditionTrue {
		wrong(status.PodUID == "" || status.PodIP == "" || status.KeyID == "", "Ready without pod, address or key: %+v", *status)
		wrong(status.Start == "", "Ready without start")
		wrong(status.Limits == nil, "Ready without limits")
	}
	if ready != nil && ready.Reason == v1alpha1.ReasonSuspended {
		wrong(status.PodUID != "", "Suspended and podUID %q", status.PodUID)
	}
	return joined("Sandbox", sandbox.ObjectMeta, errs)
}

// CheckTemplate says what is wrong with the status of a SandboxTemplate that was reconciled.
func CheckTemplate(template *v1alpha1.SandboxTemplate) error {
	reasons := []string{v1alpha1.ReasonAccepted, v1alpha1.ReasonTemplateInvalid}
	return joined("SandboxTemplate", template.ObjectMeta,
		checkConditions(template.ObjectMeta, ptr.Deref(template.Status.ObservedGeneration, -1), template.Status.Conditions, reasons))
}

func joined(kind string, meta metav1.ObjectMeta, errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("status of %s %s/%s: %w", kind, meta.Namespace, meta.Name, errors.Join(errs...))
}

func checkConditions(meta metav1.ObjectMeta, observed int64, conditions []metav1.Condition, reasons []string) []error {
	var errs []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong(observed > meta.Generation || observed < 1, "observedGeneration %d of generation %d", observed, meta.Generation)
	for i := range conditions {
		c := &conditions[i]
		wrong(!slices.Contains(reasons, c.Reason), "%s has the undocumented reason %q", c.Type, c.Reason)
		wrong(c.Message == "", "%s=%s/%s has no message", c.Type, c.Status, c.Reason)
		wrong(c.ObservedGeneration != observed, "%s has observedGeneration %d, the status %d", c.Type, c.ObservedGeneration, observed)
		wrong(c.LastTransitionTime.IsZero(), "%s has no lastTransitionTime", c.Type)
		wrong(c.Type != v1alpha1.ConditionReady && c.Status != metav1.ConditionTrue, "%s lingers as %s", c.Type, c.Status)
	}
	ready := find(conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return append(errs, errors.New("no Ready condition"))
	}
	var others []string
	for _, conditionType := range []string{v1alpha1.ConditionSuspended, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
		if c := find(conditions, conditionType); c != nil {
			others = append(others, conditionType)
			wrong(c.Reason != ready.Reason, "%s says %s, Ready says %s", c.Type, c.Reason, ready.Reason)
		}
	}
	if ready.Status == metav1.ConditionTrue {
		wrong(len(others) > 0, "Ready and %v", others)
	} else {
		wrong(len(others) != 1, "not Ready and %v: want exactly one of Suspended, Reconciling, Stalled", others)
	}
	return append(errs, checkKstatus(meta, observed, conditions, ready)...)
}

// checkKstatus holds that generic tools read the same from it as we mean.
func checkKstatus(meta metav1.ObjectMeta, observed int64, conditions []metav1.Condition, ready *metav1.Condition) []error {
	got := KstatusOf(meta, observed, conditions)
	want := InProgress
	switch {
	case meta.DeletionTimestamp != nil:
		want = Terminating
	case observed != meta.Generation:
	case ready.Status == metav1.ConditionTrue:
		want = Current
	case find(conditions, v1alpha1.ConditionStalled) != nil:
		want = Failed
	}
	if got != want {
		return []error{fmt.Errorf("kstatus reads %s, meant is %s", got, want)}
	}
	return nil
}

func find(conditions []metav1.Condition, conditionType string) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return &conditions[i]
		}
	}
	return nil
}
