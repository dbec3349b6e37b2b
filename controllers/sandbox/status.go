package sandbox

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers/status"
)

// Computed is the new status, and when it would change by time alone (zero if never).
type Computed struct {
	Status v1alpha1.SandboxStatus
	WakeAt time.Time
}

// Compute gives the status that follows from what was seen, planned and done. It
// is pure, and a fixed point: the status of a settled sandbox follows from itself.
func Compute(seen *Observation, plan Plan, done Outcome) Computed {
	sandbox := seen.Sandbox
	result := Computed{Status: *sandbox.Status.DeepCopy(), WakeAt: plan.WakeAt}
	next := &result.Status
	next.ObservedGeneration = ptr.To(sandbox.Generation)
	next.PodFailures = nil
	if plan.Failures > 0 {
		next.PodFailures = ptr.To(plan.Failures)
	}
	next.ExpiresAt = expiresAt(seen)

	live := livePod(seen, plan, done)
	switch {
	case plan.Next != nil:
		next.PodGeneration = ptr.To(plan.Next.Generation)
		if plan.Next.Termination != nil {
			next.LastTermination = plan.Next.Termination
		}
	case live != nil:
		next.PodGeneration = ptr.To(generation(sandbox))
		if restart := restartOf(live); restart != nil && newer(restart, next.LastTermination) {
			next.LastTermination = restart
		}
	}
	if seen.Template != nil && (!recorded(sandbox) || next.Limits == nil) {
		next.Limits = effectiveLimits(sandbox, seen.Template)
		next.BackgroundIsActivity = ptr.To(backgroundIsActivity(seen.Template))
		next.FileRoots = fileRoots(seen.Template)
		next.ArtifactStore = artifactStore(seen.Template)
	}

	ready, cause := false, Cause{}
	switch {
	case done.Refused != nil:
		cause = *done.Refused
		result.WakeAt = earliest(result.WakeAt, retryAt(seen))
	case plan.Cause != nil:
		cause = *plan.Cause
	case live != nil:
		wasReady := !readySince(sandbox).IsZero() && sandbox.Status.PodUID == string(live.UID)
		var until time.Time
		ready, cause, until = podState(live, wasReady, seen.Now)
		result.WakeAt = earliest(result.WakeAt, until)
	}
	setPod(next, live, cause)
	if ready {
		next.Start = v1alpha1.StartCold
	}
	next.Conditions = status.Conditions(next.Conditions, desired(sandbox, ready, cause), sandbox.Generation, seen.Now)
	return result
}

// livePod is the pod that status names: the one that was just created, or the
// present one unless its generation is over or the sandbox is going.
func livePod(seen *Observation, plan Plan, done Outcome) *corev1.Pod {
	switch {
	case done.Created != nil:
		return done.Created
	case plan.Next != nil || seen.Pod == nil || terminationOf(seen.Pod, seen.Now) != nil:
		return nil
	default:
		return seen.Pod
	}
}

// setPod names the live pod. Its node and address are told once there is more to
// say than that it is on its way: nobody needs them before, and each would cost a
// write of every cold start.
func setPod(next *v1alpha1.SandboxStatus, live *corev1.Pod, cause Cause) {
	if live == nil || next.PodUID != string(live.UID) {
		next.PodName, next.PodUID, next.PodIP, next.NodeName, next.KeyID = "", "", "", "", ""
	}
	if live == nil {
		return
	}
	next.PodName, next.PodUID = live.Name, string(live.UID)
	next.KeyID = live.Annotations[v1alpha1.AnnotationKeyID]
	if cause.Reason != v1alpha1.ReasonPodPending {
		next.PodIP, next.NodeName = live.Status.PodIP, live.Spec.NodeName
	}
}

// newer tells whether the run of a container ended after what is recorded. A pod's
// end that is as old is kept: it has the better reason.
func newer(restart, known *v1alpha1.Termination) bool {
	return known == nil || known.Time.Before(&restart.Time)
}

// desired lists the conditions: Ready always, the others only while true.
func desired(sandbox *v1alpha1.Sandbox, ready bool, cause Cause) []metav1.Condition {
	condition := func(conditionType string, conditionStatus metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: conditionStatus, Reason: cause.Reason, Message: cause.Message}
	}
	if ready {
		return []metav1.Condition{condition(v1alpha1.ConditionReady, metav1.ConditionTrue)}
	}
	list := []metav1.Condition{condition(v1alpha1.ConditionReady, metav1.ConditionFalse)}
	switch {
	case cause.Reason == v1alpha1.ReasonSuspended:
		list = append(list, condition(v1alpha1.ConditionSuspended, metav1.ConditionTrue))
	case cause.Stalled:
		list = append(list, condition(v1alpha1.ConditionStalled, metav1.ConditionTrue))
	default:
		list = append(list, condition(v1alpha1.ConditionReconciling, metav1.ConditionTrue))
	}
	return list
}
