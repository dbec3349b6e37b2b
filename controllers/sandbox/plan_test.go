package sandbox

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers/sandbox/pod"
	"github.com/berth-dev/berth/test/builders"
)

const uid = "11111111-2222-3333-4444-555555555555"

var (
	born = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	now  = born.Add(time.Minute)
)

// summary is what a plan comes to, in words.
type summary struct {
	Steps  []string
	Reason string
	// Generation is the next one, 0 if the present one goes on.
	Generation int64
	Ended      string
	Failures   int64
	// Wake is how long from now; -1 if never.
	Wake time.Duration
}

func summarize(plan Plan) summary {
	s := summary{Failures: plan.Failures, Wake: -1}
	for _, step := range plan.Steps {
		switch {
		case step.ApplyPolicy != nil:
			s.Steps = append(s.Steps, "apply "+step.ApplyPolicy.Name)
		case step.CreatePod != nil:
			s.Steps = append(s.Steps, "create "+step.CreatePod.Name)
		case step.DeletePod != nil:
			s.Steps = append(s.Steps, "delete "+step.DeletePod.Name+" "+string(step.DeletePod.UID))
		case step.DeleteSandbox != nil:
			s.Steps = append(s.Steps, "delete sandbox "+string(step.DeleteSandbox.UID)+" at "+step.DeleteSandbox.ResourceVersion)
		}
	}
	if plan.Cause != nil {
		s.Reason = plan.Cause.Reason
	}
	if plan.Next != nil {
		s.Generation = plan.Next.Generation
		if plan.Next.Termination != nil {
			s.Ended = plan.Next.Termination.Reason
		}
	}
	if !plan.WakeAt.IsZero() {
		s.Wake = plan.WakeAt.Sub(now)
	}
	return s
}

func name(generation int64) string { return pod.Name("s", uid, generation) }

func aSandbox() *builders.Sandbox { return builders.MakeSandbox("s", "team").Stored(uid, born) }

func aTemplate() *v1alpha1.SandboxTemplate { return builders.MakeTemplate("default", "team").Obj() }

func aPod(generation int64) *builders.Pod {
	return builders.MakePod(name(generation), "pod-uid", aSandbox().Obj(), generation).Created(born)
}

// with is the status of a sandbox whose pod of that generation is recorded, and
// which became Ready at that time.
func with(generation int64, readyAt time.Time) v1alpha1.SandboxStatus {
	return v1alpha1.SandboxStatus{
		ObservedGeneration: ptr.To[int64](1), PodGeneration: &generation,
		PodName: name(generation), PodUID: "pod-uid", PodIP: "10.0.0.1", Start: v1alpha1.StartCold,
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
			LastTransitionTime: metav1.NewTime(readyAt),
		}},
	}
}

// between is the status of a sandbox between two pods.
func between(generation, failures int64, endedAt time.Time) v1alpha1.SandboxStatus {
	return v1alpha1.SandboxStatus{
		ObservedGeneration: ptr.To[int64](1), PodGeneration: &generation, PodFailures: &failures, Start: v1alpha1.StartCold,
		LastTermination: &v1alpha1.Termination{Reason: terminatedEvicted, Message: "node is full", Time: metav1.NewTime(endedAt)},
	}
}

func notReady(reason string, since time.Time) v1alpha1.SandboxStatus {
	return v1alpha1.SandboxStatus{
		ObservedGeneration: ptr.To[int64](1),
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, LastTransitionTime: metav1.NewTime(since),
		}},
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		seen Observation
		want summary
	}{
		"a new sandbox gets its pod after the missing policies": {
			Observation{Sandbox: aSandbox().Obj(), Template: aTemplate(), Policies: []*networkingv1.NetworkPolicy{
				{ObjectMeta: metav1.ObjectMeta{Name: "berth-baseline"}}, {ObjectMeta: metav1.ObjectMeta{Name: "berth-egress-internet"}},
			}},
			summary{Steps: []string{"apply berth-baseline", "apply berth-egress-internet", "create " + name(1)}, Wake: -1},
		},
		"a live pod is left alone": {
			Observation{Sandbox: aSandbox().Status(with(1, born)).Obj(), Template: aTemplate(), Pod: aPod(1).Ready(born, "10.0.0.1").Obj()},
			summary{Wake: -1},
		},
		"a live pod is left alone when its template is gone or broken": {
			Observation{Sandbox: aSandbox().Status(with(1, born)).Obj(), TemplateErrors: field.ErrorList{field.Required(nil, "")}, Pod: aPod(1).Ready(born, "10.0.0.1").Obj()},
			summary{Wake: -1},
		},
		"without a template there is nothing to do": {
			Observation{Sandbox: aSandbox().Obj()},
			summary{Reason: v1alpha1.ReasonTemplateNotFound, Wake: -1},
		},
		"from an invalid template no pod is made": {
			Observation{Sandbox: aSandbox().Obj(), Template: aTemplate(), TemplateErrors: field.ErrorList{field.Required(field.NewPath("x"), "y")}},
			summary{Reason: v1alpha1.ReasonTemplateInvalid, Wake: -1},
		},
		"a foreign pod of our name is neither adopted nor deleted": {
			Observation{Sandbox: aSandbox().Obj(), Template: aTemplate(), Foreign: true},
			summary{Reason: v1alpha1.ReasonNameConflict, Wake: time.Second},
		},
		"a failed pod begins the next generation, and no pod yet": {
			Observation{Sandbox: aSandbox().Status(with(1, born)).Obj(), Template: aTemplate(), Pod: aPod(1).Phase(corev1.PodFailed, "", "").Obj()},
			summary{Reason: v1alpha1.ReasonPodFailed, Generation: 2, Ended: "Failed", Failures: 1},
		},
		"an evicted pod": {
			Observation{Sandbox: aSandbox().Status(with(3, born)).Obj(), Template: aTemplate(), Pod: aPod(3).Phase(corev1.PodFailed, "Evicted", "disk").Obj()},
			summary{Reason: v1alpha1.ReasonEvicted, Generation: 4, Ended: "Evicted", Failures: 1},
		},
		"a terminating pod": {
			Observation{Sandbox: aSandbox().Status(with(1, born)).Obj(), Template: aTemplate(), Pod: aPod(1).Ready(born, "10.0.0.1").Terminating(now).Obj()},
			summary{Reason: v1alpha1.ReasonPodTerminating, Generation: 2, Ended: "Deleted", Failures: 1},
		},
		"a pod of a lost node": {
			Observation{Sandbox: aSandbox().Status(with(1, born)).Obj(), Template: aTemplate(), Pod: aPod(1).Ready(born, "10.0.0.1").
				Condition(corev1.DisruptionTarget, corev1.ConditionTrue, "DeletionByTaintManager", "").Terminating(now).Obj()},
			summary{Reason: v1alpha1.ReasonNodeLost, Generation: 2, Ended: "NodeLost", Failures: 1},
		},
		"a recorded pod that is gone": {
			Observation{Sandbox: aSandbox().Status(with(1, born)).Obj(), Template: aTemplate()},
			summary{Reason: v1alpha1.ReasonPodTerminating, Generation: 2, Ended: "Deleted", Failures: 1},
		},
		"a pod that served for ten minutes counts afresh": {
			Observation{Now: born.Add(10 * time.Minute), Sandbox: aSandbox().Status(func() v1alpha1.SandboxStatus {
				s := with(5, born)
				s.PodFailures = ptr.To[int64](7)
				return s
			}()).Obj(), Template: aTemplate()},
			summary{Reason: v1alpha1.ReasonPodTerminating, Generation: 6, Ended: "Deleted", Failures: 1, Wake: 9 * time.Minute},
		},
		"the second pod follows at once": {
			Observation{Sandbox: aSandbox().Status(between(2, 1, now)).Obj(), Template: aTemplate()},
			summary{Steps: []string{"create " + name(2)}, Failures: 1, Wake: -1},
		},
		"the third waits a second": {
			Observation{Sandbox: aSandbox().Status(between(3, 2, now)).Obj(), Template: aTemplate()},
			summary{Reason: v1alpha1.ReasonEvicted, Failures: 2, Wake: time.Second},
		},
		"the third comes after that second": {
			Observation{Sandbox: aSandbox().Status(between(3, 2, now.Add(-time.Second))).Obj(), Template: aTemplate()},
			summary{Steps: []string{"create " + name(3)}, Failures: 2, Wake: -1},
		},
		"the eighth waits 32 seconds": {
			Observation{Sandbox: aSandbox().Status(between(8, 7, now)).Obj(), Template: aTemplate()},
			summary{Reason: v1alpha1.ReasonEvicted, Failures: 7, Wake: 32 * time.Second},
		},
		"then it gives up": {
			Observation{Sandbox: aSandbox().Status(between(9, 8, born)).Obj(), Template: aTemplate()},
			summary{Reason: v1alpha1.ReasonBackOff, Failures: 8, Wake: -1},
		},
		"until the spec is changed": {
			Observation{Sandbox: aSandbox().Status(between(9, 8, born)).Generation(2).Obj(), Template: aTemplate()},
			summary{Steps: []string{"create " + name(9)}, Wake: -1},
		},
		"the remains of the dead pod are cleared away before its successor": {
			Observation{Sandbox: aSandbox().Status(between(2, 1, now)).Obj(), Template: aTemplate(), Strays: []corev1.Pod{*aPod(1).Obj()}},
			summary{Steps: []string{"delete " + name(1) + " pod-uid", "create " + name(2)}, Failures: 1, Wake: -1},
		},
		"a second pod goes, the one of status stays": {
			Observation{Sandbox: aSandbox().Status(with(2, born)).Obj(), Template: aTemplate(), Pod: aPod(2).Ready(born, "10.0.0.1").Obj(), Strays: []corev1.Pod{*aPod(1).Obj()}},
			summary{Steps: []string{"delete " + name(1) + " pod-uid"}, Wake: -1},
		},
		"with its status lost, the oldest pod is taken up": {
			Observation{Sandbox: aSandbox().Obj(), Template: aTemplate(), Strays: []corev1.Pod{*aPod(4).Created(now).Obj(), *aPod(3).Obj()}},
			summary{Reason: v1alpha1.ReasonPodPending, Generation: 3},
		},
		"suspended, the pod goes and its generation ends": {
			Observation{Sandbox: aSandbox().Suspended().Status(with(1, born)).Obj(), Template: aTemplate(), Pod: aPod(1).Ready(born, "10.0.0.1").Obj()},
			summary{Steps: []string{"delete " + name(1) + " pod-uid"}, Reason: v1alpha1.ReasonSuspended, Generation: 2},
		},
		"suspended, a pod on its way out is not deleted again": {
			Observation{Sandbox: aSandbox().Suspended().Status(with(1, born)).Obj(), Template: aTemplate(), Pod: aPod(1).Terminating(now).Obj()},
			summary{Reason: v1alpha1.ReasonSuspended, Generation: 2},
		},
		"suspended and without a pod it rests": {
			Observation{Sandbox: aSandbox().Suspended().Status(between(2, 0, born)).Obj(), Template: aTemplate()},
			summary{Reason: v1alpha1.ReasonSuspended, Wake: -1},
		},
		"suspended from the start it needs no template": {
			Observation{Sandbox: aSandbox().Suspended().StartDeadline(time.Second).Obj()},
			summary{Reason: v1alpha1.ReasonSuspended, Wake: -1},
		},
		"resumed, the next pod is made": {
			Observation{Sandbox: aSandbox().Status(v1alpha1.SandboxStatus{ObservedGeneration: ptr.To[int64](1), PodGeneration: ptr.To[int64](2)}).Generation(3).Obj(), Template: aTemplate()},
			summary{Steps: []string{"create " + name(2)}, Wake: -1},
		},
		"it wakes exactly at the end of maxLifetime": {
			Observation{Sandbox: aSandbox().MaxLifetime(2 * time.Minute).Status(with(1, born)).Obj(), Template: aTemplate(), Pod: aPod(1).Ready(born, "10.0.0.1").Obj()},
			summary{Wake: time.Minute},
		},
		"or of startDeadline, until it has been Ready": {
			Observation{Sandbox: aSandbox().MaxLifetime(time.Hour).StartDeadline(90 * time.Second).Obj()},
			summary{Reason: v1alpha1.ReasonTemplateNotFound, Wake: 30 * time.Second},
		},
		"after which startDeadline is over": {
			Observation{Sandbox: aSandbox().StartDeadline(time.Second).Status(with(1, born)).Obj(), Template: aTemplate(), Pod: aPod(1).Ready(born, "10.0.0.1").Obj()},
			summary{Wake: -1},
		},
		"a deadline is announced first": {
			Observation{Sandbox: aSandbox().MaxLifetime(time.Minute).Status(with(1, born)).Obj(), Template: aTemplate(), Pod: aPod(1).Ready(born, "10.0.0.1").Obj()},
			summary{Reason: v1alpha1.ReasonExpired},
		},
		"and then carried out, on the very object that was read": {
			Observation{Sandbox: aSandbox().StartDeadline(time.Second).Status(notReady(v1alpha1.ReasonExpired, now)).Obj()},
			summary{Steps: []string{"delete sandbox " + uid + " at 1"}, Reason: v1alpha1.ReasonExpired},
		},
		"a sandbox that is being deleted gets nothing": {
			Observation{Sandbox: aSandbox().Deleting(now).MaxLifetime(time.Second).Status(with(1, born)).Obj(), Template: aTemplate()},
			summary{Reason: v1alpha1.ReasonDeleting, Wake: -1},
		},
		"and keeps no pod while a finalizer holds it": {
			Observation{Sandbox: aSandbox().Deleting(now).Status(with(1, born)).Obj(), Template: aTemplate(), Pod: aPod(1).Ready(born, "10.0.0.1").Obj()},
			summary{Steps: []string{"delete " + name(1) + " pod-uid"}, Reason: v1alpha1.ReasonDeleting, Wake: -1},
		},
		"nor is a pod deleted twice": {
			Observation{Sandbox: aSandbox().Deleting(now).Status(with(1, born)).Obj(), Template: aTemplate(), Pod: aPod(1).Terminating(now).Obj()},
			summary{Reason: v1alpha1.ReasonDeleting, Wake: -1},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.seen.Now.IsZero() {
				c.seen.Now = now
			}
			if diff := cmp.Diff(c.want, summarize(Decide(&c.seen))); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRetriesOfARefusedPodDoubleUpToAMinute(t *testing.T) {
	t.Parallel()
	for since, want := range map[time.Duration]time.Duration{
		0: time.Second, 500 * time.Millisecond: time.Second, 4 * time.Second: 4 * time.Second, time.Hour: time.Minute,
	} {
		seen := &Observation{Now: now, Sandbox: aSandbox().Status(notReady(v1alpha1.ReasonQuotaExceeded, now.Add(-since))).Obj()}
		if got := retryAt(seen).Sub(now); got != want {
			t.Errorf("refused for %s: the next try is after %s, want %s", since, got, want)
		}
	}
}

func TestDurationsAreRoundedUpToWhatStatusCanHold(t *testing.T) {
	t.Parallel()
	at := after(aSandbox().Obj(), ptr.To(v1alpha1.Duration("1500ms")))
	if got := at.Sub(born); got != 2*time.Second {
		t.Errorf("1500ms after creation is %s after it, want 2s", got)
	}
	if at = after(aSandbox().Obj(), ptr.To(v1alpha1.Duration("2562047h47m16.5s"))); at.Before(&metav1.Time{Time: now}) {
		t.Errorf("the longest duration after creation is %s, in the past", at)
	}
}
