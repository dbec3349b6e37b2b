package builders

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/api/v1alpha1"
)

// Pod builds a session's pod, or gives one that is there another status, as a
// kubelet would.
type Pod struct{ object *corev1.Pod }

// MakePod begins with a pod that the sandbox controls and that was just created.
func MakePod(name string, uid types.UID, owner *v1alpha1.Sandbox, generation int64) *Pod {
	return &Pod{&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: owner.Namespace, UID: uid,
			Annotations: map[string]string{
				v1alpha1.AnnotationKeyID:         "key-0001",
				v1alpha1.AnnotationPodGeneration: fmt.Sprint(generation),
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1alpha1.GroupVersion.WithKind("Sandbox"))},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}}
}

// PodFrom begins with a pod that is there.
func PodFrom(pod *corev1.Pod) *Pod { return &Pod{pod.DeepCopy()} }

// Obj gives the built object.
func (b *Pod) Obj() *corev1.Pod { return b.object.DeepCopy() }

// Created sets the creation time.
func (b *Pod) Created(at time.Time) *Pod {
	b.object.CreationTimestamp = metav1.NewTime(at)
	return b
}

// Terminating sets the deletion timestamp.
func (b *Pod) Terminating(at time.Time) *Pod {
	b.object.DeletionTimestamp = ptr.To(metav1.NewTime(at))
	return b
}

// Unschedulable has the scheduler find no node.
func (b *Pod) Unschedulable(message string) *Pod {
	return b.Condition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, message)
}

// Condition sets a condition of the pod.
func (b *Pod) Condition(conditionType corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) *Pod {
	condition := corev1.PodCondition{Type: conditionType, Status: status, Reason: reason, Message: message}
	for i := range b.object.Status.Conditions {
		if b.object.Status.Conditions[i].Type == conditionType {
			b.object.Status.Conditions[i] = condition
			return b
		}
	}
	b.object.Status.Conditions = append(b.object.Status.Conditions, condition)
	return b
}

// Waiting has the session's container wait for that reason.
func (b *Pod) Waiting(reason, message string) *Pod {
	b.session().State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	b.session().Ready = false
	return b.NotReady()
}

// InitWaiting has an init container wait for that reason.
func (b *Pod) InitWaiting(name, reason, message string) *Pod {
	b.object.Status.InitContainerStatuses = []corev1.ContainerStatus{{
		Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
	}}
	return b
}

// Running has the session's container run, not yet ready.
func (b *Pod) Running(since time.Time) *Pod {
	b.object.Status.Phase = corev1.PodRunning
	b.session().State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}}
	b.session().Ready = false
	return b.NotReady()
}

// Ready has the session's container run and be ready, on a node and at an address.
func (b *Pod) Ready(since time.Time, ip string) *Pod {
	b.Running(since)
	b.session().Ready = true
	b.object.Status.PodIP, b.object.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	return b.Condition(corev1.ContainersReady, corev1.ConditionTrue, "", "").Condition(corev1.PodReady, corev1.ConditionTrue, "", "")
}

// NotReady turns the pod's readiness off.
func (b *Pod) NotReady() *Pod {
	return b.Condition(corev1.ContainersReady, corev1.ConditionFalse, "ContainersNotReady", "").
		Condition(corev1.PodReady, corev1.ConditionFalse, "ContainersNotReady", "")
}

// Exited has the session's container be ended.
func (b *Pod) Exited(exitCode int32, reason, message string, at time.Time) *Pod {
	b.session().State = corev1.ContainerState{Terminated: exit(exitCode, reason, message, at)}
	b.session().Ready = false
	return b.NotReady()
}

// Before has the session's container have had a run that ended so.
func (b *Pod) Before(exitCode int32, reason, message string, at time.Time) *Pod {
	b.session().LastTerminationState = corev1.ContainerState{Terminated: exit(exitCode, reason, message, at)}
	b.session().RestartCount++
	return b
}

func exit(exitCode int32, reason, message string, at time.Time) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ExitCode: exitCode, Reason: reason, Message: message, FinishedAt: metav1.NewTime(at)}
}

// Phase sets phase, reason and message of the whole pod.
func (b *Pod) Phase(phase corev1.PodPhase, reason, message string) *Pod {
	b.object.Status.Phase, b.object.Status.Reason, b.object.Status.Message = phase, reason, message
	return b
}

func (b *Pod) session() *corev1.ContainerStatus {
	for i := range b.object.Status.ContainerStatuses {
		if b.object.Status.ContainerStatuses[i].Name == v1alpha1.SessionContainerName {
			return &b.object.Status.ContainerStatuses[i]
		}
	}
	b.object.Status.ContainerStatuses = append(b.object.Status.ContainerStatuses, corev1.ContainerStatus{Name: v1alpha1.SessionContainerName})
	return &b.object.Status.ContainerStatuses[len(b.object.Status.ContainerStatuses)-1]
}
