// Package sandbox reconciles a Sandbox: it gives it one pod, replaces a dead one,
// ends it at its deadlines, and tells its true state.
//
// A reconcile is observe (the only reads) -> plan (pure) -> act -> status (pure)
// -> one patch guarded by resourceVersion.
//
// # One live pod
//
// A pod's name follows from the Sandbox's UID and status.podGeneration, so the
// API server admits one pod per generation whoever creates it. A generation
// begins with a status patch under resourceVersion, and only then is its pod
// created: a reconciler that lags behind fails at the patch, or means a pod that
// is there. What a cache alone can't tell is read from the API server first: a
// recorded pod that the cache has not, a second pod, a Sandbox without a pod that
// an earlier leader may have given one, and whatever follows a write whose
// outcome is unknown.
//
// # Time
//
// Nothing sleeps or polls. Each deadline (maxLifetime, startDeadline, back-off)
// is an exact RequeueAfter of the injected clock.
package sandbox
