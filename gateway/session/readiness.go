package session

import (
	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
)

// state is what a Sandbox's status means for a caller who wants to use it now.
type state int

const (
	// stateReady: calls go through.
	stateReady state = iota
	// stateWaiting: it may become ready within the wait.
	stateWaiting
	// stateFailed: only somebody's action helps, or more time than a caller has.
	stateFailed
)

// hopeless are the reasons that no wait of a minute mends. A caller is told at
// once; the Sandbox stays, and serves if the cause goes away.
var hopeless = map[string]bool{
	berthv1alpha1.ReasonTemplateNotFound:     true,
	berthv1alpha1.ReasonTemplateInvalid:      true,
	berthv1alpha1.ReasonImagePullBackOff:     true,
	berthv1alpha1.ReasonCreateContainerError: true,
	berthv1alpha1.ReasonCrashLoopBackOff:     true,
	berthv1alpha1.ReasonNoShell:              true,
	berthv1alpha1.ReasonPodForbidden:         true,
	berthv1alpha1.ReasonNameConflict:         true,
	berthv1alpha1.ReasonSuspended:            true,
	berthv1alpha1.ReasonQuotaExceeded:        true,
	berthv1alpha1.ReasonBackOff:              true,
	berthv1alpha1.ReasonExpired:              true,
}

// readiness judges a record. A status that is older than the spec may be about
// to change, so it never fails a caller.
func readiness(r *Record) state {
	switch {
	case r.routable():
		return stateReady
	case !r.Observed:
		return stateWaiting
	case r.Stalled || hopeless[r.Reason]:
		return stateFailed
	default:
		return stateWaiting
	}
}
