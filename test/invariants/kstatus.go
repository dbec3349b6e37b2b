package invariants

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kstatus is what tools such as kpt, Flux and kubectl-wait plugins make of an
// object (the rules of sigs.k8s.io/cli-utils/pkg/kstatus for kinds it has no
// special knowledge of).
type Kstatus string

// The answers of kstatus.
const (
	Current     Kstatus = "Current"
	InProgress  Kstatus = "InProgress"
	Failed      Kstatus = "Failed"
	Terminating Kstatus = "Terminating"
)

// KstatusOf computes it from metadata, the observed generation and conditions.
func KstatusOf(meta metav1.ObjectMeta, observedGeneration int64, conditions []metav1.Condition) Kstatus {
	is := func(conditionType string, status metav1.ConditionStatus) bool {
		for _, condition := range conditions {
			if condition.Type == conditionType {
				return condition.Status == status
			}
		}
		return false
	}
	switch {
	case meta.DeletionTimestamp != nil:
		return Terminating
	case observedGeneration != meta.Generation:
		return InProgress
	case is("Reconciling", metav1.ConditionTrue):
		return InProgress
	case is("Stalled", metav1.ConditionTrue):
		return Failed
	case is("Ready", metav1.ConditionTrue):
		return Current
	default:
		return InProgress
	}
}
