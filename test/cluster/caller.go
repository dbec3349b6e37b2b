package cluster

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
)

// GatewayAudience is the audience that the gateway demands of a caller's token.
const GatewayAudience = "berth-gateway"

// CreateCaller makes a service account that may use every session of its
// namespace through the gateway, and nothing else. What exists already is kept.
func (c *Cluster) CreateCaller(ctx context.Context, key client.ObjectKey) error {
	meta := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
	for _, obj := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{v1alpha1.GroupVersion.Group},
			Resources: []string{"sandboxes/" + v1alpha1.SubresourceSession},
			Verbs:     []string{"create", "get", "delete"},
		}}},
		&rbacv1.RoleBinding{ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: key.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: key.Namespace, Name: key.Name}},
		},
	} {
		if err := c.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %T %s: %w", obj, key, err)
		}
	}
	return nil
}

// Token asks the API server for a service account's bearer token that is good
// for the gateway only, for an hour.
func (c *Cluster) Token(ctx context.Context, serviceAccount client.ObjectKey) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: serviceAccount.Namespace, Name: serviceAccount.Name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{GatewayAudience}}}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("request a token of service account %s: %w", serviceAccount, err)
	}
	return request.Status.Token, nil
}
