package sandbox

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/api/v1alpha1"
)

// startGrace is how long a container that was just started may take until its
// agent is missed: readiness is probed once a second.
const startGrace = 3 * time.Second

// podState tells what a live pod says about its sandbox. wasReady: the sandbox is
// Ready by the present status with this very pod. The time, unless zero, is when
// the answer changes by itself.
func podState(p *corev1.Pod, wasReady bool, now time.Time) (ready bool, cause Cause, until time.Time) {
	pending := Cause{Reason: v1alpha1.ReasonPodPending, Message: fmt.Sprintf("pod %q was created and is on its way", p.Name)}
	if p.Status.Phase == corev1.PodUnknown || p.Status.Reason == "NodeLost" {
		return false, nodeLost(p), time.Time{}
	}
	if conditionStatus(p, corev1.PodReady) == corev1.ConditionTrue {
		if p.Status.PodIP == "" {
			return false, pending, time.Time{}
		}
		return true, Cause{Reason: v1alpha1.ReasonReady, Message: fmt.Sprintf("pod %q serves the session", p.Name)}, time.Time{}
	}
	if cause := schedulingCause(p); cause != nil {
		return false, *cause, time.Time{}
	}
	if cause := containerCause(p); cause != nil {
		return false, *cause, time.Time{}
	}
	session := sessionStatus(p)
	if session == nil || session.State.Running == nil {
		return false, pending, time.Time{}
	}
	if !session.Ready {
		graceEnd := session.State.Running.StartedAt.Add(startGrace)
		if !wasReady && now.Before(graceEnd) {
			return false, pending, graceEnd
		}
		return false, Cause{
			Reason:  v1alpha1.ReasonAgentUnreachable,
			Message: fmt.Sprintf("the session's container of pod %q runs and its agent does not answer", p.Name),
		}, time.Time{}
	}
	if conditionStatus(p, corev1.ContainersReady) == corev1.ConditionTrue && !gated(p) {
		// All containers were ready when their kubelet last spoke, and the node
		// controller took the pod's readiness away.
		return false, nodeLost(p), time.Time{}
	}
	return false, waitingForOthers(p), time.Time{}
}

func nodeLost(p *corev1.Pod) Cause {
	return Cause{Reason: v1alpha1.ReasonNodeLost, Message: fmt.Sprintf("node %q of pod %q does not report", p.Spec.NodeName, p.Name)}
}

// gated tells whether a readiness gate of the template holds the pod back.
func gated(p *corev1.Pod) bool {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Reason == "ReadinessGatesNotReady"
		}
	}
	return false
}

func waitingForOthers(p *corev1.Pod) Cause {
	var names []string
	for i := range p.Status.ContainerStatuses {
		if container := &p.Status.ContainerStatuses[i]; !container.Ready {
			names = append(names, container.Name)
		}
	}
	what := "a readiness gate"
	if len(names) > 0 {
		what = "container " + strings.Join(names, ", ")
	}
	return Cause{Reason: v1alpha1.ReasonPodPending, Message: fmt.Sprintf("pod %q waits for %s", p.Name, what)}
}

func schedulingCause(p *corev1.Pod) *Cause {
	for _, condition := range p.Status.Conditions {
		if condition.Type != corev1.PodScheduled || condition.Status != corev1.ConditionFalse {
			continue
		}
		if condition.Reason == corev1.PodReasonSchedulingGated {
			return &Cause{Reason: v1alpha1.ReasonPodPending, Message: "pod waits for its scheduling gates: " + condition.Message}
		}
		return &Cause{Reason: v1alpha1.ReasonUnschedulable, Message: orElse(condition.Message, "no node takes the pod")}
	}
	return nil
}

// containerCause tells what holds a container back, the session's first.
func containerCause(p *corev1.Pod) *Cause {
	if session := sessionStatus(p); session != nil {
		if cause := waitingCause(session); cause != nil {
			return cause
		}
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			if cause := waitingCause(&list[i]); cause != nil {
				return cause
			}
		}
	}
	return nil
}

// waitingReasons maps what the kubelet says of a waiting container to a reason.
var waitingReasons = map[string]string{
	"ImagePullBackOff":           v1alpha1.ReasonImagePullBackOff,
	"ErrImagePull":               v1alpha1.ReasonImagePullBackOff,
	"ErrImageNeverPull":          v1alpha1.ReasonImagePullBackOff,
	"InvalidImageName":           v1alpha1.ReasonImagePullBackOff,
	"ImageInspectError":          v1alpha1.ReasonImagePullBackOff,
	"RegistryUnavailable":        v1alpha1.ReasonImagePullBackOff,
	"SignatureValidationFailed":  v1alpha1.ReasonImagePullBackOff,
	"CreateContainerConfigError": v1alpha1.ReasonCreateContainerError,
	"CreateContainerError":       v1alpha1.ReasonCreateContainerError,
	"PreCreateHookError":         v1alpha1.ReasonCreateContainerError,
	"PreStartHookError":          v1alpha1.ReasonCreateContainerError,
	"PostStartHookError":         v1alpha1.ReasonCreateContainerError,
	"RunContainerError":          v1alpha1.ReasonCreateContainerError,
	"CrashLoopBackOff":           v1alpha1.ReasonCrashLoopBackOff,
}

func waitingCause(container *corev1.ContainerStatus) *Cause {
	if cause := exitCause(container); cause != nil {
		return cause
	}
	waiting := container.State.Waiting
	if waiting == nil {
		return nil
	}
	reason, known := waitingReasons[waiting.Reason]
	if !known {
		return nil
	}
	message := fmt.Sprintf("container %q: %s", container.Name, waiting.Reason)
	if waiting.Message != "" {
		message += ": " + waiting.Message
	}
	if last := container.LastTerminationState.Terminated; reason == v1alpha1.ReasonCrashLoopBackOff && last != nil {
		_, how := exitOf(last)
		message += "; last time " + how
	}
	return &Cause{Reason: reason, Message: message}
}

// exitCause looks behind a container that ended or waits to be restarted: an
// exceeded memory limit and a missing shell are the truth, not the back-off.
func exitCause(container *corev1.ContainerStatus) *Cause {
	ended := container.State.Terminated
	if ended == nil && container.State.Waiting != nil {
		ended = container.LastTerminationState.Terminated
	}
	if ended == nil || container.Name != v1alpha1.SessionContainerName {
		return nil
	}
	switch reason, message := exitOf(ended); reason {
	case terminatedOOMKilled:
		return &Cause{Reason: v1alpha1.ReasonOOMKilled, Message: message + "; it is restarting"}
	case terminatedNoShell:
		return &Cause{Reason: v1alpha1.ReasonNoShell, Message: message, Stalled: true}
	default:
		if container.State.Terminated == nil {
			return nil
		}
		return &Cause{Reason: v1alpha1.ReasonCrashLoopBackOff, Message: message + "; it is restarting"}
	}
}

func conditionStatus(p *corev1.Pod, conditionType corev1.PodConditionType) corev1.ConditionStatus {
	for _, condition := range p.Status.Conditions {
		if condition.Type == conditionType {
			return condition.Status
		}
	}
	return corev1.ConditionUnknown
}
