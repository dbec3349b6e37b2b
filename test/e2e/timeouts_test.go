package e2e

import "time"

// How long things may take on a slow, shared machine before a spec gives up.
// None of them is a wait that a good run has to sit out.
const (
	// rolloutTimeout is for a Deployment to be replaced, images being on the nodes.
	rolloutTimeout = 2 * time.Minute
	// specTimeout is for one whole spec.
	specTimeout = 4 * time.Minute
	// readyTimeout is for a Sandbox to be Ready.
	readyTimeout = 60 * time.Second
	// conditionTimeout is for the controller to report what the cluster knows.
	// The kubelet needs a few tries to call a failed pull a back-off.
	conditionTimeout = 60 * time.Second
	// goneTimeout is for a deleted object to be gone.
	goneTimeout = 60 * time.Second
	// policyTimeout is for a changed NetworkPolicy to take effect.
	policyTimeout = 30 * time.Second
	// connectTimeout is for one attempt to connect, which a policy that drops
	// packets lets run out.
	connectTimeout = 3 * time.Second
	// cleanUpTimeout is for a namespace with all in it.
	cleanUpTimeout = 2 * time.Minute
	// interval is between two looks where there is nothing to watch.
	interval = 200 * time.Millisecond
)
