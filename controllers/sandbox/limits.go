package sandbox

import (
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers/sandbox/pod"
	agent "github.com/berth-dev/berth/sandbox-agent/client"
)

// effectiveLimits are the template's with the agent's defaults filled in. Uploads
// have no limit by default.
func effectiveLimits(sandbox *v1alpha1.Sandbox, template *v1alpha1.SandboxTemplate) *v1alpha1.Limits {
	limits := &v1alpha1.Limits{}
	if template.Spec.Limits != nil {
		limits = template.Spec.Limits.DeepCopy()
	}
	limitTimeouts(limits)
	if limits.OutputBytes == nil {
		limits.OutputBytes = ptr.To[int64](agent.DefaultOutputBytes)
	}
	if limits.ArtifactBytes == nil {
		limits.ArtifactBytes = ptr.To[int64](agent.DefaultArtifactBytes)
	}
	bound, bounded := pod.DiskBound(sandbox, template)
	limits.ArtifactTotalBytes = ptr.To(diskShare(limits.ArtifactTotalBytes, agent.DefaultArtifactTotalBytes, bound, bounded))
	limits.LogBytes = ptr.To(diskShare(limits.LogBytes, agent.DefaultLogBytes, bound, bounded))
	return limits
}

// diskShare leaves room for the session's own files where too much on disk evicts
// the pod: logs, and artifacts, get half of that bound if so much was asked for, and
// a quarter if nothing was.
func diskShare(asked *int64, size, bound int64, bounded bool) int64 {
	most := bound / 4
	if asked != nil {
		size, most = *asked, bound/2
	}
	if bounded {
		size = min(size, most)
	}
	return max(size, 1) // to an agent, 0 is its default
}

func limitTimeouts(limits *v1alpha1.Limits) {
	command, longest := agent.DefaultCommandTimeout*time.Second, agent.MaxCommandTimeout*time.Second
	switch {
	case limits.CommandTimeout == nil && limits.MaxCommandTimeout == nil:
	case limits.CommandTimeout == nil:
		longest = parsed(limits.MaxCommandTimeout, longest)
		command = min(command, longest)
	case limits.MaxCommandTimeout == nil:
		command = parsed(limits.CommandTimeout, command)
		longest = max(longest, command)
	}
	defaultDuration(&limits.CommandTimeout, command)
	defaultDuration(&limits.MaxCommandTimeout, longest)
}

func parsed(duration *v1alpha1.Duration, fallback time.Duration) time.Duration {
	if length, err := duration.Parse(); err == nil {
		return length
	}
	return fallback
}

func defaultDuration(field **v1alpha1.Duration, length time.Duration) {
	if *field == nil {
		*field = ptr.To(v1alpha1.Duration(length.String()))
	}
}

// backgroundIsActivity is the template's word on what keeps a session from being idle.
func backgroundIsActivity(template *v1alpha1.SandboxTemplate) bool {
	return template.Spec.Lifecycle != nil && ptr.Deref(template.Spec.Lifecycle.BackgroundIsActivity, false)
}

// fileRoots are what the template lets file tools reach besides the workspace.
func fileRoots(template *v1alpha1.SandboxTemplate) []v1alpha1.FileRoot {
	if template.Spec.Files == nil {
		return nil
	}
	return slices.Clone(template.Spec.Files.Roots)
}

// artifactStore is where the template wants exports to go; empty is the pod.
func artifactStore(template *v1alpha1.SandboxTemplate) v1alpha1.StoreName {
	if template.Spec.Artifacts == nil {
		return ""
	}
	return template.Spec.Artifacts.Store
}
