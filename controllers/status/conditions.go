// Package status turns computed conditions into status writes: no write when
// nothing changed, and else one merge patch that fails if the object changed
// since it was read.
package status

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/api/v1alpha1"
)

// owned are the condition types that Berth's controllers set. Conditions of
// other types are left to whoever set them.
var owned = []string{
	v1alpha1.ConditionReady, v1alpha1.ConditionSuspended, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled,
}

// Conditions gives the list to store: the desired ones, each with the time at
// which its status last flipped; and the previous ones that are not ours. One of
// ours that is not desired is gone, so that none lingers.
func Conditions(previous, desired []metav1.Condition, generation int64, now time.Time) []metav1.Condition {
	result := make([]metav1.Condition, 0, len(desired))
	for _, condition := range desired {
		condition.ObservedGeneration = generation
		condition.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
		if before := Find(previous, condition.Type); before != nil && before.Status == condition.Status {
			condition.LastTransitionTime = before.LastTransitionTime
		}
		condition.Message = Clip(condition.Message, maxMessage)
		result = append(result, condition)
	}
	for _, condition := range previous {
		if !slices.Contains(owned, condition.Type) {
			result = append(result, condition)
		}
	}
	return result
}

// Find gives the condition of that type, or nil.
func Find(conditions []metav1.Condition, conditionType string) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return &conditions[i]
		}
	}
	return nil
}

// maxMessage is below the API's bound of 32768 bytes; more helps nobody.
const maxMessage = 2048

// Clip cuts the text to at most that many bytes, on a rune border.
func Clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "..."
	end := limit - len(ellipsis)
	for end > 0 && text[end]&0xC0 == 0x80 {
		end--
	}
	return text[:end] + ellipsis
}
