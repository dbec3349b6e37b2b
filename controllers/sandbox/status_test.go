package sandbox

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers/status"
	"github.com/berth-dev/berth/test/builders"
	"github.com/berth-dev/berth/test/invariants"
)

// settle computes the status that follows from an observation.
func settle(seen *Observation, done Outcome) (*v1alpha1.Sandbox, Computed) {
	if seen.Now.IsZero() {
		seen.Now = now
	}
	computed := Compute(seen, Decide(seen), done)
	after := seen.Sandbox.DeepCopy()
	after.Status = computed.Status
	return after, computed
}

// TestReadyTellsTheTrueCause is requirement R7: for each state of a pod, what
// Ready says, and which other condition goes with it.
func TestReadyTellsTheTrueCause(t *testing.T) {
	t.Parallel()
	const message = "said by the kubelet"
	cases := map[string]struct {
		pod    *builders.Pod
		reason string
		other  string
		says   string
	}{
		"just created":              {aPod(1), v1alpha1.ReasonPodPending, v1alpha1.ConditionReconciling, "on its way"},
		"unschedulable":             {aPod(1).Unschedulable("0/3 nodes are available"), v1alpha1.ReasonUnschedulable, v1alpha1.ConditionReconciling, "0/3 nodes are available"},
		"gated":                     {aPod(1).Condition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonSchedulingGated, "gate x"), v1alpha1.ReasonPodPending, v1alpha1.ConditionReconciling, "gate x"},
		"creating":                  {aPod(1).Waiting("ContainerCreating", ""), v1alpha1.ReasonPodPending, v1alpha1.ConditionReconciling, "on its way"},
		"image back-off":            {aPod(1).Waiting("ImagePullBackOff", message), v1alpha1.ReasonImagePullBackOff, v1alpha1.ConditionReconciling, message},
		"image pull error":          {aPod(1).Waiting("ErrImagePull", message), v1alpha1.ReasonImagePullBackOff, v1alpha1.ConditionReconciling, "ErrImagePull: " + message},
		"invalid image name":        {aPod(1).Waiting("InvalidImageName", message), v1alpha1.ReasonImagePullBackOff, v1alpha1.ConditionReconciling, "InvalidImageName"},
		"image of an init":          {aPod(1).Waiting("PodInitializing", "").InitWaiting("berth-agent-install", "ErrImagePull", message), v1alpha1.ReasonImagePullBackOff, v1alpha1.ConditionReconciling, `"berth-agent-install"`},
		"config error":              {aPod(1).Waiting("CreateContainerConfigError", message), v1alpha1.ReasonCreateContainerError, v1alpha1.ConditionReconciling, message},
		"create error":              {aPod(1).Waiting("CreateContainerError", message), v1alpha1.ReasonCreateContainerError, v1alpha1.ConditionReconciling, message},
		"run error":                 {aPod(1).Waiting("RunContainerError", message), v1alpha1.ReasonCreateContainerError, v1alpha1.ConditionReconciling, message},
		"crash loop":                {aPod(1).Waiting("CrashLoopBackOff", message).Before(2, "Error", "boom", born), v1alpha1.ReasonCrashLoopBackOff, v1alpha1.ConditionReconciling, "exit status 2: boom"},
		"crashed just now":          {aPod(1).Exited(2, "Error", "boom", now), v1alpha1.ReasonCrashLoopBackOff, v1alpha1.ConditionReconciling, "exit status 2: boom"},
		"out of memory just now":    {aPod(1).Exited(137, "OOMKilled", "", now), v1alpha1.ReasonOOMKilled, v1alpha1.ConditionReconciling, "memory limit"},
		"out of memory, in a loop":  {aPod(1).Waiting("CrashLoopBackOff", message).Before(137, "OOMKilled", "", born), v1alpha1.ReasonOOMKilled, v1alpha1.ConditionReconciling, "memory limit"},
		"no shell":                  {aPod(1).Exited(78, "Error", "NoShell: the image has neither bash nor sh\n", now), v1alpha1.ReasonNoShell, v1alpha1.ConditionStalled, "the image has neither bash nor sh"},
		"no shell, in a loop":       {aPod(1).Waiting("CrashLoopBackOff", message).Before(78, "Error", "NoShell: nothing to run", born), v1alpha1.ReasonNoShell, v1alpha1.ConditionStalled, "nothing to run"},
		"78 without that message":   {aPod(1).Exited(78, "Error", "", now), v1alpha1.ReasonCrashLoopBackOff, v1alpha1.ConditionReconciling, "exit status 78"},
		"running, agent starting":   {aPod(1).Running(now.Add(-time.Second)), v1alpha1.ReasonPodPending, v1alpha1.ConditionReconciling, "on its way"},
		"running, agent silent":     {aPod(1).Running(now.Add(-startGrace)), v1alpha1.ReasonAgentUnreachable, v1alpha1.ConditionReconciling, "does not answer"},
		"ready":                     {aPod(1).Ready(born, "10.0.0.1"), v1alpha1.ReasonReady, "", "serves the session"},
		"ready without an address":  {aPod(1).Ready(born, ""), v1alpha1.ReasonPodPending, v1alpha1.ConditionReconciling, "on its way"},
		"node silent":               {aPod(1).Ready(born, "10.0.0.1").Condition(corev1.PodReady, corev1.ConditionFalse, "", ""), v1alpha1.ReasonNodeLost, v1alpha1.ConditionReconciling, "does not report"},
		"held by a readiness gate":  {aPod(1).Ready(born, "10.0.0.1").Condition(corev1.PodReady, corev1.ConditionFalse, "ReadinessGatesNotReady", ""), v1alpha1.ReasonPodPending, v1alpha1.ConditionReconciling, "readiness gate"},
		"terminating":               {aPod(1).Ready(born, "10.0.0.1").Terminating(now), v1alpha1.ReasonPodTerminating, v1alpha1.ConditionReconciling, "being replaced"},
		"failed":                    {aPod(1).Phase(corev1.PodFailed, "UnexpectedAdmissionError", message), v1alpha1.ReasonPodFailed, v1alpha1.ConditionReconciling, message},
		"evicted":                   {aPod(1).Phase(corev1.PodFailed, "Evicted", message), v1alpha1.ReasonEvicted, v1alpha1.ConditionReconciling, message},
		"node lost":                 {aPod(1).Phase(corev1.PodUnknown, "NodeLost", message), v1alpha1.ReasonNodeLost, v1alpha1.ConditionReconciling, "does not report"},
		"succeeded":                 {aPod(1).Phase(corev1.PodSucceeded, "", ""), v1alpha1.ReasonPodFailed, v1alpha1.ConditionReconciling, "containers ended"},
		"out of memory as a whole":  {aPod(1).Exited(137, "OOMKilled", "", now).Phase(corev1.PodFailed, "", ""), v1alpha1.ReasonOOMKilled, v1alpha1.ConditionReconciling, "memory limit"},
		"deleted, its shell killed": {aPod(1).Exited(137, "Error", "", now).Phase(corev1.PodFailed, "", "").Terminating(now), v1alpha1.ReasonPodTerminating, v1alpha1.ConditionReconciling, "Deleted"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := &Observation{Sandbox: aSandbox().Obj(), Template: aTemplate(), Pod: c.pod.Obj()}
			after, _ := settle(seen, Outcome{})
			ready := status.Find(after.Status.Conditions, v1alpha1.ConditionReady)
			if ready.Reason != c.reason {
				t.Errorf("Ready says %s (%s), want %s", ready.Reason, ready.Message, c.reason)
			}
			if !strings.Contains(ready.Message, c.says) {
				t.Errorf("message %q does not say %q", ready.Message, c.says)
			}
			if (ready.Status == metav1.ConditionTrue) != (c.other == "") {
				t.Errorf("Ready is %s", ready.Status)
			}
			if c.other != "" && status.Find(after.Status.Conditions, c.other) == nil {
				t.Errorf("conditions %v lack %s", after.Status.Conditions, c.other)
			}
			if err := invariants.CheckSandbox(after); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestConditionsFlipAndNoneLingers(t *testing.T) {
	t.Parallel()
	sandbox := aSandbox().Obj()
	steps := []struct {
		name   string
		change func(*v1alpha1.Sandbox)
		pod    *corev1.Pod
		want   map[string]string
	}{
		{"pending", nil, aPod(1).Obj(), map[string]string{"Ready": "PodPending", "Reconciling": "PodPending"}},
		{"ready", nil, aPod(1).Ready(born, "10.0.0.1").Obj(), map[string]string{"Ready": "Ready"}},
		{"agent gone", nil, aPod(1).Running(born).Obj(), map[string]string{"Ready": "AgentUnreachable", "Reconciling": "AgentUnreachable"}},
		{"ready again", nil, aPod(1).Ready(born, "10.0.0.1").Obj(), map[string]string{"Ready": "Ready"}},
		{"suspended", func(s *v1alpha1.Sandbox) { s.Spec.OperatingMode, s.Generation = v1alpha1.OperatingModeSuspended, 2 }, aPod(1).Ready(born, "10.0.0.1").Obj(), map[string]string{"Ready": "Suspended", "Suspended": "Suspended"}},
		{"resumed", func(s *v1alpha1.Sandbox) { s.Spec.OperatingMode, s.Generation = v1alpha1.OperatingModeRunning, 3 }, aPod(2).Obj(), map[string]string{"Ready": "PodPending", "Reconciling": "PodPending"}},
		{"no shell", nil, aPod(2).Exited(78, "Error", "NoShell: none", now).Obj(), map[string]string{"Ready": "NoShell", "Stalled": "NoShell"}},
		{"ready after all", nil, aPod(2).Ready(born, "10.0.0.1").Obj(), map[string]string{"Ready": "Ready"}},
	}
	at := now
	for _, step := range steps {
		at = at.Add(time.Minute)
		if step.change != nil {
			step.change(sandbox)
		}
		sandbox, _ = settle(&Observation{Now: at, Sandbox: sandbox, Template: aTemplate(), Pod: step.pod}, Outcome{})
		got := map[string]string{}
		for _, condition := range sandbox.Status.Conditions {
			got[condition.Type] = condition.Reason
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: conditions (-want +got):\n%s", step.name, diff)
		}
		if err := invariants.CheckSandbox(sandbox); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
	}
}

func TestTheStatusOfASettledSandboxFollowsFromItself(t *testing.T) {
	t.Parallel()
	for name, seen := range map[string]*Observation{
		"ready":     {Sandbox: aSandbox().MaxLifetime(time.Hour).Obj(), Template: aTemplate(), Pod: aPod(1).Ready(born, "10.0.0.1").Before(137, "OOMKilled", "", born).Obj()},
		"pending":   {Sandbox: aSandbox().Obj(), Template: aTemplate(), Pod: aPod(1).Obj()},
		"stuck":     {Sandbox: aSandbox().StartDeadline(1500 * time.Second).Obj()},
		"suspended": {Sandbox: aSandbox().Suspended().Obj(), Template: aTemplate()},
		"foreign":   {Sandbox: aSandbox().Obj(), Template: aTemplate(), Foreign: true},
	} {
		first, _ := settle(seen, Outcome{})
		again := *seen
		again.Sandbox, again.Now = first, now.Add(30*time.Second)
		second, _ := settle(&again, Outcome{})
		if diff := cmp.Diff(first.Status, second.Status); diff != "" {
			t.Errorf("%s: a second reconcile would write:\n%s", name, diff)
		}
	}
}

func TestAColdStartCostsTwoStatusWrites(t *testing.T) {
	t.Parallel()
	sandbox, writes := aSandbox().Obj(), 0
	created := aPod(1).Obj()
	scheduled := builders.PodFrom(created).Condition(corev1.PodScheduled, corev1.ConditionTrue, "", "").Obj()
	scheduled.Spec.NodeName = "node"
	creating := builders.PodFrom(scheduled).Waiting("ContainerCreating", "").Obj()
	running := builders.PodFrom(scheduled).Running(now).Obj()
	running.Status.PodIP = "10.0.0.1"
	ready := builders.PodFrom(running).Ready(now, "10.0.0.1").Obj()
	for _, p := range []*corev1.Pod{created, scheduled, creating, running, ready} {
		after, _ := settle(&Observation{Sandbox: sandbox, Template: aTemplate(), Pod: p}, Outcome{})
		if !cmp.Equal(sandbox.Status, after.Status) {
			writes++
		}
		sandbox = after
	}
	if writes != 2 {
		t.Errorf("%d status writes, want one for the pod and one for Ready", writes)
	}
	if sandbox.Status.PodIP != "10.0.0.1" || sandbox.Status.NodeName != "node" {
		t.Errorf("address %q, node %q", sandbox.Status.PodIP, sandbox.Status.NodeName)
	}
}

func TestARestartInPlaceKeepsThePodAndIsReported(t *testing.T) {
	t.Parallel()
	killed := now.Add(-5 * time.Second)
	sandbox := aSandbox().Status(with(1, born)).Obj()
	after, _ := settle(&Observation{Sandbox: sandbox, Template: aTemplate(), Pod: aPod(1).Exited(137, "OOMKilled", "", killed).Obj()}, Outcome{})
	if after.Status.PodUID != "pod-uid" || ptr.Deref(after.Status.PodGeneration, 0) != 1 {
		t.Errorf("the pod was given up: %+v", after.Status)
	}
	if last := after.Status.LastTermination; last == nil || last.Reason != terminatedOOMKilled || !last.Time.Time.Equal(killed) {
		t.Errorf("lastTermination is %+v, want OOMKilled at %s", last, killed)
	}
	back, _ := settle(&Observation{Now: now, Sandbox: after, Template: aTemplate(), Pod: aPod(1).Ready(now, "10.0.0.1").Before(137, "OOMKilled", "", killed).Obj()}, Outcome{})
	if back.Status.LastTermination == nil || back.Status.LastTermination.Reason != terminatedOOMKilled {
		t.Errorf("lastTermination was lost: %+v", back.Status.LastTermination)
	}
}

func TestAnUnansweredAgentIsMissedAtOnceByASandboxThatWasReady(t *testing.T) {
	t.Parallel()
	seen := &Observation{Sandbox: aSandbox().Status(with(1, born)).Obj(), Template: aTemplate(), Pod: aPod(1).Running(now).Obj()}
	after, computed := settle(seen, Outcome{})
	if ready := status.Find(after.Status.Conditions, v1alpha1.ConditionReady); ready.Reason != v1alpha1.ReasonAgentUnreachable {
		t.Errorf("Ready says %s, want AgentUnreachable", ready.Reason)
	}
	seen = &Observation{Sandbox: aSandbox().Obj(), Template: aTemplate(), Pod: aPod(1).Running(now).Obj()}
	if _, computed = settle(seen, Outcome{}); !computed.WakeAt.Equal(now.Add(startGrace)) {
		t.Errorf("a new sandbox is looked at again at %s, want %s", computed.WakeAt, now.Add(startGrace))
	}
}

func TestARefusalOfThePodIsTheCauseAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	seen := &Observation{Sandbox: aSandbox().Obj(), Template: aTemplate()}
	after, computed := settle(seen, Outcome{Refused: &Cause{Reason: v1alpha1.ReasonQuotaExceeded, Message: "exceeded quota: small"}})
	if ready := status.Find(after.Status.Conditions, v1alpha1.ConditionReady); ready.Reason != v1alpha1.ReasonQuotaExceeded {
		t.Errorf("Ready says %s", ready.Reason)
	}
	if !computed.WakeAt.Equal(now.Add(time.Second)) {
		t.Errorf("the next try is at %s, want in one second", computed.WakeAt)
	}
	if err := invariants.CheckSandbox(after); err != nil {
		t.Error(err)
	}
}

// withUploads is l, bounding uploads: they have no bound by default.
func withUploads(l *v1alpha1.Limits, size int64) *v1alpha1.Limits {
	l.UploadBytes = &size
	return l
}

func TestLimitsAreCompleteAndThoseOfThePodsBirth(t *testing.T) {
	t.Parallel()
	limits := func(command, longest string, output, artifact, disk int64) *v1alpha1.Limits {
		return &v1alpha1.Limits{
			CommandTimeout: ptr.To(v1alpha1.Duration(command)), MaxCommandTimeout: ptr.To(v1alpha1.Duration(longest)),
			OutputBytes: &output, ArtifactBytes: &artifact, ArtifactTotalBytes: &disk, LogBytes: &disk,
		}
	}
	duration := func(text string) *v1alpha1.Duration { return ptr.To(v1alpha1.Duration(text)) }
	for name, c := range map[string]struct{ template, want *v1alpha1.Limits }{
		"silent":        {nil, limits("1m0s", "5m0s", 262144, 8388608, 1<<30)},
		"short maximum": {&v1alpha1.Limits{MaxCommandTimeout: duration("10s")}, limits("10s", "10s", 262144, 8388608, 1<<30)},
		"long default":  {&v1alpha1.Limits{CommandTimeout: duration("1h")}, limits("1h", "1h0m0s", 262144, 8388608, 1<<30)},
		"uploads":       {&v1alpha1.Limits{UploadBytes: ptr.To[int64](7)}, withUploads(limits("1m0s", "5m0s", 262144, 8388608, 1<<30), 7)},
		"all said":      {limits("1s", "2s", 1024, 1, 5), limits("1s", "2s", 1024, 1, 5)},
	} {
		template := aTemplate()
		template.Spec.Limits = c.template
		if diff := cmp.Diff(c.want, effectiveLimits(aSandbox().Obj(), template)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}

	edited := builders.MakeTemplate("default", "team").Limits(v1alpha1.Limits{CommandTimeout: duration("7s")}).Lifecycle(time.Hour, 0).BackgroundIsActivity().FileRoots("/data").ArtifactStore("archive").Obj()
	old := with(1, born)
	old.Limits = effectiveLimits(aSandbox().Obj(), aTemplate())
	old.BackgroundIsActivity = ptr.To(false)
	after, _ := settle(&Observation{Sandbox: aSandbox().Status(old).Obj(), Template: edited, Pod: aPod(1).Ready(born, "10.0.0.1").Obj()}, Outcome{})
	if diff := cmp.Diff(old.Limits, after.Status.Limits); diff != "" {
		t.Errorf("an edit of the template changed the limits of a live pod:\n%s", diff)
	}
	if after.Status.ExpiresAt != nil {
		t.Errorf("an edit of the template gave a live pod the end %s", after.Status.ExpiresAt)
	}
	if len(after.Status.FileRoots) != 0 {
		t.Errorf("an edit of the template gave a live session's file tools the roots %v", after.Status.FileRoots)
	}
	if store := after.Status.ArtifactStore; store != "" {
		t.Errorf("an edit of the template sends a live session's exports to %q", store)
	}
	if *after.Status.BackgroundIsActivity {
		t.Error("an edit of the template changed what keeps a live session from being idle")
	}
	after, _ = settle(&Observation{Sandbox: aSandbox().Obj(), Template: edited}, Outcome{Created: aPod(1).Obj()})
	if got := *after.Status.Limits.CommandTimeout; got != "7s" {
		t.Errorf("the next pod has commandTimeout %s, want the edited 7s", got)
	}
	if at := after.Status.ExpiresAt; at == nil || !at.Time.Equal(born.Add(time.Hour)) {
		t.Errorf("the next pod ends at %v, want an hour after creation", at)
	}
	if diff := cmp.Diff([]v1alpha1.FileRoot{"/data"}, after.Status.FileRoots); diff != "" {
		t.Errorf("file roots of the next pod (-want +got):\n%s", diff)
	}
	if store := after.Status.ArtifactStore; store != "archive" {
		t.Errorf("artifact store of the next pod %q, want archive", store)
	}
	if !*after.Status.BackgroundIsActivity {
		t.Error("the next pod's session is idle while a background process runs, against the edited template")
	}
}

func TestLogsAndArtifactsNeverFillWhatEvictsThePod(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	for name, c := range map[string]struct {
		asked     *int64
		sizeLimit string // of the workspace
		storage   string // of the session's container
		want      int64
	}{
		"nothing bounds them":                        {want: gib},
		"a large workspace":                          {sizeLimit: "4Gi", want: gib},
		"one byte less than that":                    {sizeLimit: "4294967295", want: gib - 1},
		"a quarter of the workspace":                 {sizeLimit: "400Mi", want: 100 << 20},
		"a quarter of the container's disk":          {storage: "400Mi", want: 100 << 20},
		"a quarter of the less":                      {sizeLimit: "800Mi", storage: "400Mi", want: 100 << 20},
		"a quarter of the less, the other way round": {sizeLimit: "400Mi", storage: "800Mi", want: 100 << 20},
		"a workspace too small for any":              {sizeLimit: "3", want: 1},
		"a size limit of 0, which limits nothing":    {sizeLimit: "0", want: gib},
		"as asked":                               {asked: ptr.To[int64](2 * gib), want: 2 * gib},
		"as asked, half of the workspace":        {asked: ptr.To[int64](2 * gib), sizeLimit: "4Gi", want: 2 * gib},
		"more than half of the container's disk": {asked: ptr.To[int64](gib + 1), storage: "2Gi", want: gib},
	} {
		template := builders.MakeTemplate("default", "team").Spec(func(s *v1alpha1.SandboxTemplateSpec) {
			if c.sizeLimit != "" {
				s.Workspace = &v1alpha1.Workspace{EmptyDir: &v1alpha1.EmptyDirWorkspace{SizeLimit: ptr.To(resource.MustParse(c.sizeLimit))}}
			}
		}).Session(func(session *corev1.Container) {
			if c.storage != "" {
				session.Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse(c.storage)}
			}
		}).Limits(v1alpha1.Limits{LogBytes: c.asked, ArtifactTotalBytes: c.asked}).Obj()
		got := effectiveLimits(aSandbox().Obj(), template)
		if *got.LogBytes != c.want || *got.ArtifactTotalBytes != c.want {
			t.Errorf("%s: logs may take %d bytes and artifacts %d, want %d", name, *got.LogBytes, *got.ArtifactTotalBytes, c.want)
		}
	}
}

func TestASandboxsOwnDiskLimitBoundsItsLogs(t *testing.T) {
	t.Parallel()
	template := builders.MakeTemplate("default", "team").Pod(func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "sidecar", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("100Mi")},
		}})
	}).Obj()
	sandbox := aSandbox().Limit(corev1.ResourceEphemeralStorage, "300Mi").Obj()
	if got := *effectiveLimits(sandbox, template).LogBytes; got != 100<<20 {
		t.Errorf("logs may take %d bytes, want a quarter of what both containers may use", got)
	}
}

func TestEventsFollowTheReasonAndAreNotRepeated(t *testing.T) {
	t.Parallel()
	before, after := notReady(v1alpha1.ReasonPodPending, born), with(1, now)
	if got := changes(&before, &after); len(got) != 1 || got[0].Reason != v1alpha1.ReasonReady || got[0].Type != corev1.EventTypeNormal {
		t.Errorf("from PodPending to Ready: %+v", got)
	}
	if got := changes(&after, &after); len(got) != 0 {
		t.Errorf("the same status twice has events: %+v", got)
	}
	next, _ := settle(&Observation{Sandbox: aSandbox().Status(after).Obj(), Template: aTemplate(), Pod: aPod(1).Phase(corev1.PodFailed, "Evicted", "disk").Obj()}, Outcome{})
	got := changes(&after, &next.Status)
	if len(got) != 1 || got[0].Reason != ReasonPodReplaced || got[0].Type != corev1.EventTypeWarning || !strings.Contains(got[0].Note, "disk") {
		t.Errorf("from Ready to an evicted pod: %+v", got)
	}
	found, _ := settle(&Observation{Sandbox: aSandbox().Obj(), Template: aTemplate(), Strays: []corev1.Pod{*aPod(3).Obj()}}, Outcome{})
	if got := changes(&v1alpha1.SandboxStatus{}, &found.Status); len(got) != 1 || got[0].Reason != v1alpha1.ReasonPodPending {
		t.Errorf("from no status to a pod that was found, which replaced none: %+v", got)
	}
}
