package sandbox

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers/sandbox/pod"
)

// Step is one write. Exactly one field is set.
type Step struct {
	ApplyPolicy   *networkingv1.NetworkPolicy
	CreatePod     *corev1.Pod
	DeletePod     *PodRef
	DeleteSandbox *SandboxRef
}

// PodRef is a pod, to be deleted only if it still has that UID.
type PodRef struct {
	Name string
	UID  types.UID
}

// SandboxRef is a Sandbox, to be deleted only if it has not changed since.
type SandboxRef struct {
	UID             types.UID
	ResourceVersion string
}

// Cause says why a sandbox is in the state it is in.
type Cause struct {
	// Reason is one of v1alpha1's documented reasons.
	Reason string
	// Message is what a person can act on.
	Message string
	// Stalled: only a change from outside helps.
	Stalled bool
}

// Plan is what to do, and what is known once it is done.
type Plan struct {
	Steps []Step
	// Cause is nil if the pod itself tells the state.
	Cause *Cause
	// Next, unless nil, begins a new generation: the pod of the present one is over.
	Next *NextGeneration
	// Failures is status.podFailures from now on.
	Failures int64
	// WakeAt is when the plan would change by time alone; zero if never.
	WakeAt time.Time
}

// NextGeneration is status.podGeneration from now on, and how the pod of the one
// before ended; nil if it was suspended.
type NextGeneration struct {
	Generation  int64
	Termination *v1alpha1.Termination
}

// Decide plans. It is pure: the same observation gives the same plan.
func Decide(seen *Observation) Plan {
	if !seen.Sandbox.DeletionTimestamp.IsZero() {
		return planDeleting(seen)
	}
	if expiry := dueExpiry(seen); expiry != nil {
		return planExpiry(seen, *expiry)
	}
	if plan, found := planFound(seen); found {
		return plan
	}
	plan := planPod(seen)
	plan.Steps = append(deleteStrays(seen), plan.Steps...)
	if plan.Next == nil {
		plan.WakeAt = earliest(plan.WakeAt, nextExpiry(seen))
	} else {
		// The next generation's pod is planned from the status that this plan leads to.
		plan.WakeAt = seen.Now
	}
	return plan
}

// planDeleting ends the pods of a sandbox that lingers by somebody's finalizer. The
// garbage collector would wait with it; and when it was told to orphan them, it
// would try for ever, since no one may take a pod's owner away.
func planDeleting(seen *Observation) Plan {
	plan := Plan{
		Steps:    deleteStrays(seen),
		Failures: failures(seen),
		Cause:    &Cause{Reason: v1alpha1.ReasonDeleting, Message: "the sandbox is being deleted"},
	}
	if seen.Pod != nil && seen.Pod.DeletionTimestamp.IsZero() {
		plan.Steps = append(plan.Steps, Step{DeletePod: refTo(seen.Pod)})
	}
	return plan
}

func deleteStrays(seen *Observation) []Step {
	var steps []Step
	for i := range seen.Strays {
		steps = append(steps, Step{DeletePod: refTo(&seen.Strays[i])})
	}
	return steps
}

// planFound takes up the oldest pod of a sandbox whose status was lost.
func planFound(seen *Observation) (Plan, bool) {
	if seen.Sandbox.Status.PodGeneration != nil || seen.Pod != nil || len(seen.Strays) == 0 {
		return Plan{}, false
	}
	oldest := slices.MinFunc(seen.Strays, func(a, b corev1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	number, err := strconv.ParseInt(oldest.Annotations[v1alpha1.AnnotationPodGeneration], 10, 64)
	if err != nil || pod.Name(seen.Sandbox.Name, seen.Sandbox.UID, number) != oldest.Name {
		return Plan{}, false
	}
	return Plan{
		Next:   &NextGeneration{Generation: number},
		Cause:  &Cause{Reason: v1alpha1.ReasonPodPending, Message: fmt.Sprintf("pod %q was found", oldest.Name)},
		WakeAt: seen.Now,
	}, true
}

func planPod(seen *Observation) Plan {
	switch {
	case seen.Sandbox.Spec.OperatingMode == v1alpha1.OperatingModeSuspended:
		return planSuspended(seen)
	case seen.Foreign:
		return Plan{Failures: failures(seen), WakeAt: retryAt(seen), Cause: &Cause{
			Reason:  v1alpha1.ReasonNameConflict,
			Message: fmt.Sprintf("pod %q exists and is not this sandbox's; delete it, or give the sandbox another name", podName(seen)),
			Stalled: true,
		}}
	case seen.Pod != nil:
		if ended := terminationOf(seen.Pod, seen.Now); ended != nil {
			return planReplacement(seen, ended)
		}
		return Plan{Failures: failures(seen)}
	case recorded(seen.Sandbox):
		return planReplacement(seen, &v1alpha1.Termination{
			Reason: terminatedDeleted, Message: fmt.Sprintf("pod %q is gone", seen.Sandbox.Status.PodName), Time: seconds(seen.Now),
		})
	default:
		return planStart(seen)
	}
}

// planSuspended gives the pod up. Whatever its state, its generation is over.
func planSuspended(seen *Observation) Plan {
	plan := Plan{Cause: &Cause{Reason: v1alpha1.ReasonSuspended, Message: "suspended by spec.operatingMode; set it to Running to go on"}}
	if seen.Pod != nil && seen.Pod.DeletionTimestamp.IsZero() {
		plan.Steps = []Step{{DeletePod: refTo(seen.Pod)}}
	}
	if seen.Pod != nil || recorded(seen.Sandbox) {
		plan.Next = &NextGeneration{Generation: generation(seen.Sandbox) + 1}
	}
	return plan
}

// planReplacement begins the next generation in status only. Its pod is created
// by the plan after that, when no other reconciler can still mean this one; the
// remains of the dead pod are deleted then, as a stray.
func planReplacement(seen *Observation, ended *v1alpha1.Termination) Plan {
	return Plan{
		Failures: failures(seen) + 1,
		Next:     &NextGeneration{Generation: generation(seen.Sandbox) + 1, Termination: ended},
		Cause:    causeOfTermination(ended),
	}
}

// planStart creates the pod of the present generation if nothing speaks against it.
func planStart(seen *Observation) Plan {
	sandbox, failed := seen.Sandbox, failures(seen)
	plan := Plan{Failures: failed}
	switch {
	case seen.Template == nil:
		plan.Cause = templateNotFound(sandbox)
	case len(seen.TemplateErrors) > 0:
		plan.Cause = &Cause{
			Reason:  v1alpha1.ReasonTemplateInvalid,
			Message: fmt.Sprintf("template %q: %v", seen.Template.Name, seen.TemplateErrors.ToAggregate()),
			Stalled: true,
		}
	case failed >= maxFailures:
		plan.Cause = &Cause{
			Reason: v1alpha1.ReasonBackOff,
			Message: fmt.Sprintf("%d pods ended in a row, the last one: %s; change the sandbox's spec, or suspend and resume it, to try again",
				failed, describe(sandbox.Status.LastTermination)),
			Stalled: true,
		}
	case seen.Now.Before(notBefore(sandbox, failed)):
		plan.Cause = causeOfTermination(sandbox.Status.LastTermination)
		plan.WakeAt = notBefore(sandbox, failed)
	default:
		for _, policy := range seen.Policies {
			plan.Steps = append(plan.Steps, Step{ApplyPolicy: policy})
		}
		plan.Steps = append(plan.Steps, Step{CreatePod: pod.Build(sandbox, seen.Template, generation(sandbox), seen.Keys, seen.Options)})
	}
	return plan
}

func templateNotFound(sandbox *v1alpha1.Sandbox) *Cause {
	name, namespace := sandbox.Spec.TemplateRef.Name, sandbox.Namespace
	message := fmt.Sprintf("no SandboxTemplate %q in namespace %q; apply one of that name and the sandbox starts by itself", name, namespace)
	if name == v1alpha1.DefaultTemplateName {
		message += fmt.Sprintf(": kubectl get sbxt default -n sandboxes -o yaml | sed 's/namespace: sandboxes/namespace: %s/' | kubectl create -f -", namespace)
	}
	return &Cause{Reason: v1alpha1.ReasonTemplateNotFound, Message: message, Stalled: true}
}

func podName(seen *Observation) string {
	return pod.Name(seen.Sandbox.Name, seen.Sandbox.UID, generation(seen.Sandbox))
}

func refTo(p *corev1.Pod) *PodRef { return &PodRef{Name: p.Name, UID: p.UID} }
