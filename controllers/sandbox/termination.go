package sandbox

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers/status"
)

// How a pod ended: the closed set of lastTermination.reason and of a metric's label.
const (
	terminatedOOMKilled = "OOMKilled"
	terminatedEvicted   = "Evicted"
	terminatedPreempted = "Preempted"
	terminatedNodeLost  = "NodeLost"
	terminatedDeleted   = "Deleted"
	terminatedFailed    = "Failed"
	terminatedCompleted = "Completed"
	terminatedNoShell   = "NoShell"
	terminatedError     = "Error"
)

// maxTerminationMessage is the API's bound of lastTermination.message, in bytes
// and so also in characters.
const maxTerminationMessage = 1024

// terminationOf tells how the pod ended, or nil if it has not. A pod that is
// being deleted has ended: it takes no calls any more.
func terminationOf(p *corev1.Pod, now time.Time) *v1alpha1.Termination {
	var reason, message string
	switch {
	case p.Status.Phase == corev1.PodFailed && (p.Status.Reason != "" || p.DeletionTimestamp.IsZero()):
		reason, message = failureOf(p)
	case !p.DeletionTimestamp.IsZero(): // whatever its containers say: they were told to stop
		reason, message = disruptionOf(p)
	case p.Status.Phase == corev1.PodSucceeded:
		reason, message = terminatedCompleted, "its containers ended"
	default:
		return nil
	}
	return &v1alpha1.Termination{
		Reason:  reason,
		Message: status.Clip(fmt.Sprintf("pod %q: %s", p.Name, message), maxTerminationMessage),
		Time:    seconds(now),
	}
}

func failureOf(p *corev1.Pod) (reason, message string) {
	switch p.Status.Reason {
	case "Evicted":
		return terminatedEvicted, orElse(p.Status.Message, "evicted by its node")
	case "NodeLost":
		return terminatedNodeLost, orElse(p.Status.Message, "its node is lost")
	case "":
	default:
		return terminatedFailed, p.Status.Reason + ": " + p.Status.Message
	}
	if container := sessionStatus(p); container != nil && container.State.Terminated != nil {
		reason, message = exitOf(container.State.Terminated)
		if reason == terminatedOOMKilled || reason == terminatedNoShell {
			return reason, message
		}
		return terminatedFailed, message
	}
	if reason, message := disruptionOf(p); reason != terminatedDeleted {
		return reason, message
	}
	return terminatedFailed, orElse(p.Status.Message, "failed")
}

// disruptionOf tells on whose behalf a pod goes (KEP-3329's DisruptionTarget).
func disruptionOf(p *corev1.Pod) (reason, message string) {
	if p.Status.Reason == "NodeLost" {
		return terminatedNodeLost, orElse(p.Status.Message, "its node is lost")
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type != corev1.DisruptionTarget || condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Reason {
		case "EvictionByEvictionAPI", corev1.PodReasonTerminationByKubelet:
			return terminatedEvicted, orElse(condition.Message, "evicted")
		case corev1.PodReasonPreemptionByScheduler:
			return terminatedPreempted, orElse(condition.Message, "preempted by a pod of higher priority")
		case "DeletionByTaintManager", "DeletionByPodGC":
			return terminatedNodeLost, orElse(condition.Message, "its node is lost")
		}
	}
	return terminatedDeleted, "deleted"
}

// exitOf reads the end of one run of a container. The exit status 78 with the
// message "NoShell: ..." is the agent's way to say that the image has no shell.
func exitOf(ended *corev1.ContainerStateTerminated) (reason, message string) {
	text := strings.TrimSpace(ended.Message)
	switch {
	case ended.Reason == "OOMKilled":
		return terminatedOOMKilled, "the session's container exceeded its memory limit and was killed; files in /workspace were kept, the shell's state was not"
	case ended.ExitCode == noShellExitCode && strings.HasPrefix(text, noShellPrefix):
		return terminatedNoShell, strings.TrimSpace(strings.TrimPrefix(text, noShellPrefix))
	case ended.ExitCode == 0:
		return terminatedCompleted, orElse(text, "the session's container ended with exit status 0")
	default:
		message = fmt.Sprintf("the session's container ended with exit status %d", ended.ExitCode)
		if text != "" {
			message += ": " + text
		}
		return terminatedError, message
	}
}

const (
	noShellExitCode = 78
	noShellPrefix   = "NoShell:"
)

// restartOf tells how the previous run of the session's container in a live pod
// ended, or nil if there was none.
func restartOf(p *corev1.Pod) *v1alpha1.Termination {
	container := sessionStatus(p)
	if container == nil {
		return nil
	}
	ended := container.State.Terminated
	if ended == nil {
		ended = container.LastTerminationState.Terminated
	}
	if ended == nil {
		return nil
	}
	reason, message := exitOf(ended)
	return &v1alpha1.Termination{
		Reason:  reason,
		Message: status.Clip(message, maxTerminationMessage),
		Time:    ended.FinishedAt.Rfc3339Copy(),
	}
}

func sessionStatus(p *corev1.Pod) *corev1.ContainerStatus {
	for i := range p.Status.ContainerStatuses {
		if p.Status.ContainerStatuses[i].Name == v1alpha1.SessionContainerName {
			return &p.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// endReasons maps how a pod ended to a reason; all other ends are PodFailed.
var endReasons = map[string]string{
	terminatedOOMKilled: v1alpha1.ReasonOOMKilled,
	terminatedEvicted:   v1alpha1.ReasonEvicted,
	terminatedPreempted: v1alpha1.ReasonEvicted,
	terminatedNodeLost:  v1alpha1.ReasonNodeLost,
	terminatedDeleted:   v1alpha1.ReasonPodTerminating,
}

// causeOfTermination is what Ready says between a pod's end and its successor.
func causeOfTermination(ended *v1alpha1.Termination) *Cause {
	cause := &Cause{Reason: v1alpha1.ReasonPodFailed, Message: describe(ended) + "; it is being replaced"}
	if reason, ok := endReasons[ended.Reason]; ok {
		cause.Reason = reason
	}
	return cause
}

func describe(ended *v1alpha1.Termination) string {
	if ended == nil {
		return "the pod ended"
	}
	return ended.Reason + ": " + ended.Message
}

func orElse(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}
