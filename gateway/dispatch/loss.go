package dispatch

import (
	"context"
	"fmt"
	"time"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/gateway/session"
)

// causeWait is how long a broken call waits for the cluster to tell why.
const causeWait = 2 * time.Second

// cause waits a moment for the cluster to say what happened to rec's pod, and
// returns it as the end of a sentence; empty if it says nothing. That the agent
// is not reached is no news and only the first thing that the cluster notices:
// how its container ended comes after.
func (d *Dispatcher) cause(ctx context.Context, rec *session.Record) string {
	if ctx.Err() != nil {
		return ""
	}
	d.await(ctx, rec.Key, causeWait, func(now *session.Record, ok bool) bool {
		return !ok || now.UID != rec.UID || now.PodUID != rec.PodUID || endedAnew(rec, now) ||
			!now.Ready && now.Reason != berthv1alpha1.ReasonAgentUnreachable
	})
	now, ok := d.records.Get(rec.Key)
	switch {
	case !ok || now.UID != rec.UID:
		return ": the session was deleted"
	case endedAnew(rec, now):
		return ": " + termination(now)
	case !now.Ready && now.Reason != "":
		return ": " + now.Reason + suffix(now.Message)
	default:
		return ""
	}
}

// endedAnew tells whether a pod or container ended between two records.
func endedAnew(before, now *session.Record) bool {
	return now.Termination != nil && (before.Termination == nil || !now.Termination.Time.Equal(&before.Termination.Time))
}

// loss says what a session lost before its agent was told of it, or nothing
// when this is its first pod and that pod's first start.
func (d *Dispatcher) loss(rec *session.Record) string {
	if now, ok := d.records.Get(rec.Key); ok && now.UID == rec.UID && now.PodUID == rec.PodUID {
		rec = now // newer: how the previous one ended may have come meanwhile
	}
	switch {
	case rec.PodGeneration > 1:
		return fmt.Sprintf("the sandbox's pod was replaced (%s): shell state, processes, exports and all files outside persistent storage are gone", termination(rec))
	case rec.Termination != nil:
		return fmt.Sprintf("the sandbox's container was restarted (%s): shell state, processes and exports are gone, files in the workspace are kept", termination(rec))
	default:
		return ""
	}
}

func termination(rec *session.Record) string {
	if rec.Termination == nil {
		return "it was deleted, by a suspension for one" // an end by itself has a reason
	}
	return rec.Termination.Reason + suffix(rec.Termination.Message)
}

func suffix(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}
