package cluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
)

// WaitUntil watches one object until done says so of it, and leaves that state in
// obj, whose namespace and name say which. The object need not exist yet. list is
// an empty list of its kind. It ends with the context.
func (c *Cluster) WaitUntil(ctx context.Context, obj client.Object, list client.ObjectList, done func() bool) error {
	return c.wait(ctx, obj, list, func(exists bool) bool { return exists && done() })
}

// WaitUntilGone watches one object until there is none of its namespace and name.
func (c *Cluster) WaitUntilGone(ctx context.Context, obj client.Object, list client.ObjectList) error {
	return c.wait(ctx, obj, list, func(exists bool) bool { return !exists })
}

func (c *Cluster) wait(ctx context.Context, obj client.Object, list client.ObjectList, done func(exists bool) bool) error {
	key := client.ObjectKeyFromObject(obj)
	for {
		err := c.Get(ctx, key, obj)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil {
			obj.SetResourceVersion("")
		}
		if done(err == nil) {
			return nil
		}
		if err := c.watchUntil(ctx, obj, list, done); !errors.Is(err, errWatchEnded) {
			return err
		}
	}
}

// errWatchEnded says that the server closed the watch, as it does now and then.
var errWatchEnded = errors.New("the watch ended")

// watchUntil watches from obj's resourceVersion on, so that nothing is missed
// since it was read; for one that was not found, from the state of now.
func (c *Cluster) watchUntil(ctx context.Context, obj client.Object, list client.ObjectList, done func(exists bool) bool) error {
	w, err := c.Watch(ctx, list, &client.ListOptions{
		Namespace:     obj.GetNamespace(),
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, obj.GetName()),
		Raw:           &metav1.ListOptions{ResourceVersion: obj.GetResourceVersion()},
	})
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %T %s: %w", obj, client.ObjectKeyFromObject(obj), context.Cause(ctx))
		case event, open := <-w.ResultChan():
			if !open {
				return errWatchEnded
			}
			if event.Type == watch.Error {
				return fmt.Errorf("%w: %w", errWatchEnded, apierrors.FromObject(event.Object))
			}
			reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(event.Object).Elem())
			if done(event.Type != watch.Deleted) {
				return nil
			}
		}
	}
}

// WaitForRollout waits until every replica of a Deployment is of its newest
// template and available.
func (c *Cluster) WaitForRollout(ctx context.Context, namespace, name string) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	return c.WaitUntil(ctx, d, &appsv1.DeploymentList{}, func() bool {
		replicas := int32(1)
		if d.Spec.Replicas != nil {
			replicas = *d.Spec.Replicas
		}
		return d.Status.ObservedGeneration == d.Generation &&
			d.Status.UpdatedReplicas == replicas &&
			d.Status.Replicas == replicas &&
			d.Status.AvailableReplicas == replicas
	})
}

// WaitForBerth waits until controller and gateway run: an installation doesn't.
func (c *Cluster) WaitForBerth(ctx context.Context) error {
	for _, name := range []string{"berth-controller", "berth-gateway"} {
		if err := c.WaitForRollout(ctx, SystemNamespace, name); err != nil {
			return fmt.Errorf("%s is not running; see `kubectl -n %s get pods`: %w", name, SystemNamespace, err)
		}
	}
	return nil
}

// WaitForReady waits until a Sandbox is Ready in its newest generation. The error
// of one that is not in time holds the reason of its Ready condition.
func (c *Cluster) WaitForReady(ctx context.Context, sandbox *v1alpha1.Sandbox) error {
	err := c.WaitUntil(ctx, sandbox, &v1alpha1.SandboxList{}, func() bool {
		ready := meta.FindStatusCondition(sandbox.Status.Conditions, v1alpha1.ConditionReady)
		return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == sandbox.Generation
	})
	if ready := meta.FindStatusCondition(sandbox.Status.Conditions, v1alpha1.ConditionReady); err != nil && ready != nil {
		return fmt.Errorf("%w; Ready is %s because of %s: %s", err, ready.Status, ready.Reason, ready.Message)
	}
	return err
}

// WaitForPodReady waits until a pod is Ready.
func (c *Cluster) WaitForPodReady(ctx context.Context, pod *corev1.Pod) error {
	return c.WaitUntil(ctx, pod, &corev1.PodList{}, func() bool { return IsReady(pod) })
}
