package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
)

// Outcome is what acting brought about.
type Outcome struct {
	// Created is the pod that was created.
	Created *corev1.Pod
	// Refused says why the API server would not have the pod.
	Refused *Cause
	// Deleted: the sandbox itself was deleted; there is no status to write.
	Deleted bool
}

// errSeenStale: what was observed is not so any more. Observe again, live.
var errSeenStale = errors.New("observed state is out of date")

// act carries the plan's steps out in order and stops at the first that fails.
func (c *Controller) act(ctx context.Context, sandbox *v1alpha1.Sandbox, steps []Step) (Outcome, error) {
	var done Outcome
	for _, step := range steps {
		var err error
		switch {
		case step.ApplyPolicy != nil:
			err = c.policies.Apply(ctx, step.ApplyPolicy)
		case step.DeletePod != nil:
			err = c.deletePod(ctx, sandbox.Namespace, step.DeletePod)
		case step.DeleteSandbox != nil:
			done.Deleted = true
			err = c.deleteSandbox(ctx, sandbox, step.DeleteSandbox)
		case step.CreatePod != nil:
			done.Created, done.Refused, err = c.createPod(ctx, step.CreatePod)
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

func (c *Controller) createPod(ctx context.Context, wanted *corev1.Pod) (*corev1.Pod, *Cause, error) {
	created := wanted.DeepCopy()
	err := c.client.Create(ctx, created)
	switch {
	case err == nil:
		return created, nil, nil
	case apierrors.IsAlreadyExists(err):
		// Ours, made by a write of unknown outcome or by another replica; or foreign.
		return nil, nil, errSeenStale
	}
	if cause := refusal(err); cause != nil {
		return nil, cause, nil
	}
	return nil, nil, fmt.Errorf("create pod %s/%s: %w", wanted.Namespace, wanted.Name, err)
}

// refusal tells why the API server would not have the pod, or nil if it did not
// say: the outcome may then be unknown.
func refusal(err error) *Cause {
	switch {
	case apierrors.IsForbidden(err) && isQuota(err):
		return &Cause{Reason: v1alpha1.ReasonQuotaExceeded, Message: err.Error()}
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return &Cause{Reason: v1alpha1.ReasonPodForbidden, Message: err.Error(), Stalled: true}
	default:
		return nil
	}
}

func (c *Controller) deletePod(ctx context.Context, namespace string, ref *PodRef) error {
	gone := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ref.Name}}
	err := c.client.Delete(ctx, gone, client.Preconditions{UID: &ref.UID})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone, or another pod has that name by now
	}
	if err != nil {
		return fmt.Errorf("delete pod %s/%s: %w", namespace, ref.Name, err)
	}
	return nil
}

// deleteSandbox deletes the very object that was observed: a deadline that was
// pushed out meanwhile wins.
func (c *Controller) deleteSandbox(ctx context.Context, sandbox *v1alpha1.Sandbox, ref *SandboxRef) error {
	gone := &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.Namespace, Name: sandbox.Name}}
	err := c.client.Delete(ctx, gone, client.Preconditions{UID: &ref.UID, ResourceVersion: &ref.ResourceVersion})
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return errSeenStale
	default:
		return fmt.Errorf("delete sandbox %s/%s: %w", sandbox.Namespace, sandbox.Name, err)
	}
}

// isQuota recognises the messages of Kubernetes' ResourceQuota admission, which
// have no status cause of their own.
func isQuota(err error) bool {
	for _, words := range []string{"exceeded quota: ", "failed quota: ", "status unknown for quota: "} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}
