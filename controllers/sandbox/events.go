package sandbox

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers/status"
)

// ReasonPodReplaced is the reason of the event that a pod ended and gets a successor.
// All other events of a Sandbox have the reason of its Ready condition.
const ReasonPodReplaced = "PodReplaced"

// The actions of events, as events.k8s.io has them: what the controller did.
const (
	actionReconcile = "Reconcile"
	actionReplace   = "ReplacePod"
)

// uneventful are the reasons that say nothing a user waits to be told.
var uneventful = map[string]bool{v1alpha1.ReasonDeleting: true}

// healthy are the reasons whose event is Normal; all others are Warnings.
var healthy = map[string]bool{
	v1alpha1.ReasonReady: true, v1alpha1.ReasonPodPending: true,
	v1alpha1.ReasonSuspended: true, v1alpha1.ReasonExpired: true,
}

// Event is one event to record.
type Event struct{ Type, Reason, Action, Note string }

// changes are the events between two statuses: one when a pod was replaced, else
// one when the reason of Ready changed. The same status twice has none.
func changes(before, after *v1alpha1.SandboxStatus) []Event {
	if replaced(before, after) {
		return []Event{{corev1.EventTypeWarning, ReasonPodReplaced, actionReplace, describe(after.LastTermination)}}
	}
	was, is := status.Find(before.Conditions, v1alpha1.ConditionReady), status.Find(after.Conditions, v1alpha1.ConditionReady)
	if is == nil || was != nil && was.Reason == is.Reason || uneventful[is.Reason] {
		return nil
	}
	eventType := corev1.EventTypeWarning
	if healthy[is.Reason] {
		eventType = corev1.EventTypeNormal
	}
	return []Event{{eventType, is.Reason, actionReconcile, is.Message}}
}

// replaced tells whether a generation ended by a pod's end: not by suspension, and
// not because a pod of a later one was found after the status was lost.
func replaced(before, after *v1alpha1.SandboxStatus) bool {
	return ptr.Deref(after.PodGeneration, 1) > ptr.Deref(before.PodGeneration, 1) &&
		after.LastTermination != nil && status.Find(after.Conditions, v1alpha1.ConditionSuspended) == nil
}

// tell records events and metrics of a status that was just written.
func (c *Controller) tell(ctx context.Context, seen *Observation, after v1alpha1.SandboxStatus) {
	before := &seen.Sandbox.Status
	for _, event := range changes(before, &after) {
		c.recorder.Eventf(seen.Sandbox, nil, event.Type, event.Reason, event.Action, "%s", status.Clip(event.Note, maxNote))
		log.FromContext(ctx).Info("Changed the sandbox's state", "reason", event.Reason, "podGeneration", ptr.Deref(after.PodGeneration, 0))
	}
	if replaced(before, &after) {
		podsReplaced.WithLabelValues(after.LastTermination.Reason).Inc()
	}
	if before.PodUID == "" && after.PodUID != "" {
		podsCreated.Inc()
	}
	if ready := status.Find(after.Conditions, v1alpha1.ConditionReady); before.Start == "" && after.Start != "" && ready.Status == metav1.ConditionTrue {
		startSeconds.WithLabelValues(string(after.Start)).Observe(seen.Now.Sub(seen.Sandbox.CreationTimestamp.Time).Seconds())
	}
}

// maxNote is the API's bound of an event's note, in bytes.
const maxNote = 1024
