package status

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestConditionsKeepTheTimeOfTheLastFlip(t *testing.T) {
	t.Parallel()
	past := metav1.NewTime(time.Unix(100, 0))
	now := time.Unix(200, 500)
	previous := []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionFalse, Reason: "PodPending", LastTransitionTime: past, ObservedGeneration: 1},
		{Type: "Reconciling", Status: metav1.ConditionTrue, Reason: "PodPending", LastTransitionTime: past, ObservedGeneration: 1},
		{Type: "example.com/Audited", Status: metav1.ConditionTrue, Reason: "Theirs", LastTransitionTime: past},
	}
	got := Conditions(previous, []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionFalse, Reason: "NoShell", Message: "m"},
		{Type: "Stalled", Status: metav1.ConditionTrue, Reason: "NoShell", Message: "m"},
	}, 2, now)
	want := []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionFalse, Reason: "NoShell", Message: "m", LastTransitionTime: past, ObservedGeneration: 2},
		{Type: "Stalled", Status: metav1.ConditionTrue, Reason: "NoShell", Message: "m", LastTransitionTime: metav1.NewTime(time.Unix(200, 0)), ObservedGeneration: 2},
		previous[2],
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func TestClipCutsOnARuneBorder(t *testing.T) {
	t.Parallel()
	for limit := 4; limit < 12; limit++ {
		got := Clip("äöüäöüäöü", limit)
		if len(got) > limit || !utf8.ValidString(got) {
			t.Errorf("cut to %d bytes: %q", limit, got)
		}
	}
	if got := Clip("short", 5); got != "short" {
		t.Errorf("what fits was cut to %q", got)
	}
}
