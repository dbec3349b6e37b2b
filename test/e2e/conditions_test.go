package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/api/v1alpha1"
)

// waitReason waits until a Sandbox is not Ready for that reason, and gives the
// condition.
func (t *tenant) waitReason(ctx context.Context, id, reason string) metav1.Condition {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, conditionTimeout)
	defer cancel()
	sandbox := &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: id}}
	var ready metav1.Condition
	err := admin.WaitUntil(ctx, sandbox, &v1alpha1.SandboxList{}, func() bool {
		if found := meta.FindStatusCondition(sandbox.Status.Conditions, v1alpha1.ConditionReady); found != nil {
			ready = *found
		}
		return ready.Status == metav1.ConditionFalse && ready.Reason == reason
	})
	Expect(err).NotTo(HaveOccurred(), "want Ready=False because of %s, it is %s because of %s: %s", reason, ready.Status, ready.Reason, ready.Message)
	return ready
}
