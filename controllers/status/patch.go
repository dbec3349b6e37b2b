package status

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patch writes the status of after if it differs from that of before, which is
// the object as it was read. It tells whether it wrote. A conflict means that
// another write came in between: the caller observes again.
func Patch(ctx context.Context, c client.Client, before, after client.Object) (bool, error) {
	if equality.Semantic.DeepEqual(before, after) {
		return false, nil
	}
	guarded := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return true, c.Status().Patch(ctx, after, guarded)
}
