package session

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// Record is what the gateway needs to know of a Sandbox: about a kilobyte of it.
// It is never changed once it is shared.
type Record struct {
	Key
	UID      types.UID
	Owner    string
	Template string
	// CreatedByGateway: a gateway made it on demand, and may do so again.
	CreatedByGateway bool
	// Deleting: the API server has been asked to delete it.
	Deleting bool
	// Observed: the status is about the newest spec.
	Observed bool

	Ready   bool
	Stalled bool
	// Reason and Message are those of the Ready condition.
	Reason  string
	Message string

	PodUID        string
	PodIP         netip.Addr
	KeyID         string
	PodGeneration int64
	// Termination is how the previous pod or container ended, or nil.
	Termination *berthv1alpha1.Termination
	Limits      client.Limits
	// ArtifactStore is where exports go; empty is the pod.
	ArtifactStore string
	// BackgroundIsActivity: a background process keeps the session from being idle.
	BackgroundIsActivity bool
	// FileRoots are what file tools reach besides the workspace.
	FileRoots []string
	Env       []client.EnvVar

	// suspect: the address failed a call, so it is asked for anew before it is
	// used again.
	suspect bool
}

// NewRecord reads a Sandbox.
func NewRecord(s *berthv1alpha1.Sandbox) *Record {
	r := &Record{
		Key:              Key{Namespace: s.Namespace, Name: s.Name},
		UID:              s.UID,
		Owner:            s.Spec.Owner,
		Template:         templateOf(s),
		CreatedByGateway: s.Labels[berthv1alpha1.LabelCreatedBy] == berthv1alpha1.CreatedByGateway,
		Deleting:         s.DeletionTimestamp != nil,
		Observed:         s.Status.ObservedGeneration != nil && *s.Status.ObservedGeneration >= s.Generation,
		Stalled:          meta.IsStatusConditionTrue(s.Status.Conditions, berthv1alpha1.ConditionStalled),
		PodUID:           s.Status.PodUID,
		KeyID:            s.Status.KeyID,
		Termination:      s.Status.LastTermination,
		Limits:           limits(s.Status.Limits),
		ArtifactStore:    string(s.Status.ArtifactStore),
		FileRoots:        roots(s.Status.FileRoots),
		Env:              environment(s.Spec.Env),
	}
	if ready := meta.FindStatusCondition(s.Status.Conditions, berthv1alpha1.ConditionReady); ready != nil {
		r.Ready = ready.Status == metav1.ConditionTrue
		r.Reason, r.Message = ready.Reason, ready.Message
	}
	if s.Status.BackgroundIsActivity != nil {
		r.BackgroundIsActivity = *s.Status.BackgroundIsActivity
	}
	if s.Status.PodGeneration != nil {
		r.PodGeneration = *s.Status.PodGeneration
	}
	if ip, err := netip.ParseAddr(s.Status.PodIP); err == nil {
		r.PodIP = ip
	}
	return r
}

// Pod is the one pod that calls are routed to.
func (r *Record) Pod() client.Pod {
	return client.Pod{Namespace: r.Namespace, UID: r.PodUID, IP: r.PodIP, KeyID: r.KeyID}
}

// Session is what a freshly started agent is told.
func (r *Record) Session() client.Session {
	return client.Session{
		UID: string(r.UID), Env: r.Env, Limits: r.Limits,
		BackgroundIsActivity: r.BackgroundIsActivity, FileRoots: r.FileRoots,
	}
}

// samePod tells whether r and other route to the same place.
func (r *Record) samePod(other *Record) bool {
	return r.PodUID == other.PodUID && r.PodIP == other.PodIP && r.KeyID == other.KeyID
}

// routable tells whether calls can go to the pod.
func (r *Record) routable() bool {
	return r.Ready && !r.Deleting && r.PodUID != "" && r.PodIP.IsValid()
}

func environment(env []berthv1alpha1.EnvVar) []client.EnvVar {
	if len(env) == 0 {
		return nil
	}
	out := make([]client.EnvVar, 0, len(env))
	for _, e := range env {
		v := client.EnvVar{Name: e.Name}
		if e.Value != nil {
			v.Value = *e.Value
		}
		out = append(out, v)
	}
	return out
}

func roots(list []berthv1alpha1.FileRoot) []string {
	var out []string
	for _, root := range list {
		out = append(out, string(root))
	}
	return out
}

// limits are the effective ones, as the agent takes them; zero is a default.
func limits(l *berthv1alpha1.Limits) client.Limits {
	var out client.Limits
	if l == nil {
		return out
	}
	out.CommandTimeoutDefault = seconds(l.CommandTimeout)
	out.CommandTimeoutMax = seconds(l.MaxCommandTimeout)
	if l.OutputBytes != nil {
		out.OutputBytes = int(*l.OutputBytes)
	}
	if l.ArtifactBytes != nil {
		out.ArtifactBytes = *l.ArtifactBytes
	}
	if l.ArtifactTotalBytes != nil {
		out.ArtifactTotalBytes = *l.ArtifactTotalBytes
	}
	if l.LogBytes != nil {
		out.LogBytes = *l.LogBytes
	}
	if l.UploadBytes != nil {
		out.UploadBytes = *l.UploadBytes
	}
	return out
}

// seconds rounds up to whole seconds, so that no limit becomes 0, which would
// mean its default. What does not parse can't be in the API server.
func seconds(d *berthv1alpha1.Duration) int {
	if d == nil {
		return 0
	}
	parsed, err := d.Parse()
	if err != nil {
		return 0
	}
	return int((parsed + 999_999_999) / 1_000_000_000)
}
