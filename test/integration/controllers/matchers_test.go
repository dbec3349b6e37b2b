package controllers_test

import (
	"fmt"

	"github.com/onsi/gomega/gcustom"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers/status"
)

type conditioned interface{ GetConditions() []metav1.Condition }

// BeReady matches an object that is Ready.
func BeReady() types.GomegaMatcher { return haveReady(metav1.ConditionTrue, "") }

// BeUnready matches an object that is not Ready for that reason.
func BeUnready(reason string) types.GomegaMatcher { return haveReady(metav1.ConditionFalse, reason) }

func haveReady(want metav1.ConditionStatus, reason string) types.GomegaMatcher {
	return gcustom.MakeMatcher(func(actual conditioned) (bool, error) {
		ready := status.Find(actual.GetConditions(), v1alpha1.ConditionReady)
		return ready != nil && ready.Status == want && (reason == "" || ready.Reason == reason), nil
	}).WithMessage(fmt.Sprintf("have Ready=%s %s", want, reason))
}

// HaveTrue matches an object of which the condition of that type is True.
func HaveTrue(conditionType string) types.GomegaMatcher {
	return gcustom.MakeMatcher(func(actual conditioned) (bool, error) {
		condition := status.Find(actual.GetConditions(), conditionType)
		return condition != nil && condition.Status == metav1.ConditionTrue, nil
	}).WithMessage("have the condition " + conditionType)
}

// message is what Ready says in words.
func message(of conditioned) string {
	if ready := status.Find(of.GetConditions(), v1alpha1.ConditionReady); ready != nil {
		return ready.Message
	}
	return ""
}
