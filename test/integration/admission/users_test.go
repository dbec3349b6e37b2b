package admission_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// user is a client that acts as a user with certain rights in one namespace.
type user struct {
	client.Client
	name string
}

var users atomic.Int64

// newUser makes a user with these rights and no other.
func newUser(ctx context.Context, namespace string, rules ...rbacv1.PolicyRule) user {
	GinkgoHelper()
	name := fmt.Sprintf("user-%d", users.Add(1))
	Expect(admin.Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: rules,
	})).To(Succeed())
	bind(ctx, namespace, name, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, rules)
	return as(name)
}

// newUserWithRole makes a user whom a shipped ClusterRole is bound to.
func newUserWithRole(ctx context.Context, namespace, clusterRole string) user {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{}
	Expect(admin.Get(ctx, client.ObjectKey{Name: clusterRole}, role)).To(Succeed())
	name := fmt.Sprintf("user-%d", users.Add(1))
	bind(ctx, namespace, name, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole}, role.Rules)
	return as(name)
}

// bind gives a user a role in a namespace and waits until it has effect.
func bind(ctx context.Context, namespace, name string, role rbacv1.RoleRef, rules []rbacv1.PolicyRule) {
	GinkgoHelper()
	Expect(admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-" + role.Name},
		RoleRef:    role,
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})).To(Succeed())
	for _, rule := range rules {
		Eventually(func(g Gomega) {
			g.Expect(may(ctx, name, namespace, rule.Verbs[0], rule.APIGroups[0], rule.Resources[0])).To(BeTrue())
		}).WithTimeout(effective).Should(Succeed())
	}
}

// may asks the API server whether a user may do something; resource may hold a
// sub-resource after a slash.
func may(ctx context.Context, name, namespace, verb, group, resource string) bool {
	GinkgoHelper()
	resource, subresource, _ := strings.Cut(resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: name,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: group, Resource: resource, Subresource: subresource,
		},
	}}
	Expect(admin.Create(ctx, review)).To(Succeed())
	return review.Status.Allowed
}

func as(name string) user {
	GinkgoHelper()
	impersonating := rest.CopyConfig(config)
	impersonating.Impersonate = rest.ImpersonationConfig{UserName: name}
	c, err := client.New(impersonating, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return user{Client: c, name: name}
}

func allow(verb, group, resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}}
}

// BeForbidden matches the API server's 403.
func BeForbidden() types.GomegaMatcher {
	return WithTransform(apierrors.IsForbidden, BeTrue())
}

// BeInvalid matches a refusal by a CRD's validation whose text has these words.
func BeInvalid(words string) types.GomegaMatcher {
	return And(WithTransform(apierrors.IsInvalid, BeTrue()), MatchError(ContainSubstring(words)))
}
