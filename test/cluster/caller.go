package cluster

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
)

// GatewayAudience is the audience that the gateway demands of a caller's token.
const GatewayAudience = "berth-gateway"

// callerRole is the role that Berth brings for those who use sessions.
const callerRole = "berth-caller"

// CreateCaller makes a service account that may use every session of its
// namespace through the gateway, and nothing else. What exists already is kept.
// It waits until the API server's authorizer knows it, so that the gateway does
// not remember a refusal.
func (c *Cluster) CreateCaller(ctx context.Context, key client.ObjectKey) error {
	meta := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
	for _, obj := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.RoleBinding{ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: callerRole},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: key.Namespace, Name: key.Name}},
		},
	} {
		if err := c.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %T %s: %w", obj, key, err)
		}
	}
	return wait.PollUntilContextCancel(ctx, authorizerInterval, true, func(ctx context.Context) (bool, error) {
		return c.mayUseSessions(ctx, key)
	})
}

// authorizerInterval is between two questions to the authorizer, which follows
// roles by a watch of its own that tells no one how far it is.
const authorizerInterval = 20 * time.Millisecond

func (c *Cluster) mayUseSessions(ctx context.Context, serviceAccount client.ObjectKey) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + serviceAccount.Namespace + ":" + serviceAccount.Name,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: serviceAccount.Namespace, Verb: "create",
			Group: v1alpha1.GroupVersion.Group, Resource: "sandboxes", Subresource: v1alpha1.SubresourceSession,
		},
	}}
	err := c.Create(ctx, review)
	return review.Status.Allowed, err
}

// Token asks the API server for a service account's bearer token that is good
// for the gateway only, for an hour.
func (c *Cluster) Token(ctx context.Context, serviceAccount client.ObjectKey) (string, error) {
	return c.TokenFor(ctx, serviceAccount, GatewayAudience)
}

// TokenFor asks for a token that is good for another audience.
func (c *Cluster) TokenFor(ctx context.Context, serviceAccount client.ObjectKey, audience string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: serviceAccount.Namespace, Name: serviceAccount.Name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("request a token of service account %s: %w", serviceAccount, err)
	}
	return request.Status.Token, nil
}
