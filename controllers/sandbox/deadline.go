package sandbox

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers/status"
)

const (
	// maxFailures pods may end in a row before the controller gives up.
	maxFailures = 8
	// stableAfter of being Ready, a pod's end is no failure in a row any more.
	stableAfter = 10 * time.Minute
	// The first replacement is made at once; each further one waits, doubling, up to
	// 32 s before maxFailures.
	firstBackOff = time.Second
	// What the API server refused is tried again after as long as it has been
	// refused already (so the waits double), within these bounds.
	minRetry = time.Second
	maxRetry = time.Minute
)

// failures is status.podFailures, begun afresh when the spec was changed or the
// present pod has been Ready for long.
func failures(seen *Observation) int64 {
	status := &seen.Sandbox.Status
	if ptr.Deref(status.ObservedGeneration, -1) != seen.Sandbox.Generation {
		return 0
	}
	if since := readySince(seen.Sandbox); !since.IsZero() && seen.Now.Sub(since) >= stableAfter {
		return 0
	}
	return ptr.Deref(status.PodFailures, 0)
}

// notBefore is when the pod after so many failures in a row, fewer than maxFailures,
// may be created.
func notBefore(sandbox *v1alpha1.Sandbox, failed int64) time.Time {
	last := sandbox.Status.LastTermination
	if last == nil || failed < 2 {
		return time.Time{}
	}
	return last.Time.Add(firstBackOff << (failed - 2))
}

// retryAt is when to try again what was refused.
func retryAt(seen *Observation) time.Time {
	elapsed := time.Duration(0)
	if ready := readyCondition(seen.Sandbox); ready != nil && ready.Status == metav1.ConditionFalse {
		elapsed = seen.Now.Sub(ready.LastTransitionTime.Time)
	}
	return seen.Now.Add(min(max(elapsed, minRetry), maxRetry))
}

// expiry is a deadline that deletes the sandbox.
type expiry struct {
	field string
	at    time.Time
}

func (e expiry) message() string {
	return fmt.Sprintf("%s passed at %s; the sandbox is being deleted", e.field, e.at.UTC().Format(time.RFC3339))
}

// expiries are the deadlines that apply now.
func expiries(seen *Observation) []expiry {
	var list []expiry
	if at := expiresAt(seen); at != nil {
		list = append(list, expiry{field: "maxLifetime", at: at.Time})
	}
	if at := startBy(seen); !at.IsZero() {
		list = append(list, expiry{field: "startDeadline", at: at})
	}
	return list
}

func dueExpiry(seen *Observation) *expiry {
	for _, e := range expiries(seen) {
		if !seen.Now.Before(e.at) {
			return &e
		}
	}
	return nil
}

// planExpiry says Expired first and deletes next, so that whoever waits learns why.
func planExpiry(seen *Observation, expiry expiry) Plan {
	plan := Plan{
		Failures: failures(seen),
		Cause:    &Cause{Reason: v1alpha1.ReasonExpired, Message: expiry.message()},
		WakeAt:   seen.Now,
	}
	if ready := readyCondition(seen.Sandbox); ready != nil && ready.Reason == v1alpha1.ReasonExpired {
		plan.Steps = []Step{{DeleteSandbox: &SandboxRef{UID: seen.Sandbox.UID, ResourceVersion: seen.Sandbox.ResourceVersion}}}
	}
	return plan
}

func nextExpiry(seen *Observation) time.Time {
	var next time.Time
	for _, e := range expiries(seen) {
		next = earliest(next, e.at)
	}
	return next
}

// expiresAt is the end of maxLifetime: the sandbox's own, or the template's at
// the time when the present pod was made, or now if there is none.
func expiresAt(seen *Observation) *metav1.Time {
	sandbox := seen.Sandbox
	if sandbox.Spec.MaxLifetime != nil {
		return after(sandbox, sandbox.Spec.MaxLifetime)
	}
	sameSpec := ptr.Deref(sandbox.Status.ObservedGeneration, -1) == sandbox.Generation
	if recorded(sandbox) && sameSpec || seen.Template == nil {
		return sandbox.Status.ExpiresAt
	}
	if lifecycle := seen.Template.Spec.Lifecycle; lifecycle != nil {
		return after(sandbox, lifecycle.MaxLifetime)
	}
	return nil
}

// startBy is the end of startDeadline, while it applies: to a sandbox that has
// never been Ready and that is not suspended.
func startBy(seen *Observation) time.Time {
	sandbox := seen.Sandbox
	if sandbox.Status.Start != "" || sandbox.Spec.OperatingMode == v1alpha1.OperatingModeSuspended {
		return time.Time{}
	}
	limit := sandbox.Spec.StartDeadline
	if limit == nil && seen.Template != nil && seen.Template.Spec.Lifecycle != nil {
		limit = seen.Template.Spec.Lifecycle.StartDeadline
	}
	if at := after(sandbox, limit); at != nil {
		return at.Time
	}
	return time.Time{}
}

// after is so long after the sandbox's creation, in whole seconds, rounded up:
// what status can hold. A duration that does not parse can't have been admitted.
func after(sandbox *v1alpha1.Sandbox, limit *v1alpha1.Duration) *metav1.Time {
	if limit == nil {
		return nil
	}
	length, err := limit.Parse()
	if err != nil {
		return nil
	}
	end := sandbox.CreationTimestamp.Add(length)
	if whole := end.Truncate(time.Second); whole.Before(end) {
		end = whole.Add(time.Second) // of the time: a sum of durations could overflow
	}
	at := metav1.NewTime(end).Rfc3339Copy()
	return &at
}

func readyCondition(sandbox *v1alpha1.Sandbox) *metav1.Condition {
	return status.Find(sandbox.Status.Conditions, v1alpha1.ConditionReady)
}

// readySince is when the sandbox became Ready, zero if it is not.
func readySince(sandbox *v1alpha1.Sandbox) time.Time {
	if ready := readyCondition(sandbox); ready != nil && ready.Status == metav1.ConditionTrue {
		return ready.LastTransitionTime.Time
	}
	return time.Time{}
}

// earliest of two times, of which zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func seconds(t time.Time) metav1.Time { return metav1.NewTime(t).Rfc3339Copy() }
