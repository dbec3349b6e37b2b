package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DeleteNamespace deletes a namespace and waits until it is gone with all that
// was in it. The error of one that is not in time holds what remained.
func (c *Cluster) DeleteNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := c.Delete(ctx, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	err := c.WaitUntilGone(ctx, namespace, &corev1.NamespaceList{})
	if err != nil {
		for _, condition := range namespace.Status.Conditions {
			err = fmt.Errorf("%w; %s: %s", err, condition.Type, condition.Message)
		}
	}
	return err
}
