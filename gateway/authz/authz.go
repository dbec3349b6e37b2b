// Package authz asks the API server what a caller may do with a session.
package authz

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/reviewcache"
)

// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Verb is what a caller wants of the virtual resource sandboxes/session.
type Verb string

// Verbs of sandboxes/session.
const (
	// Create runs tools, and makes the session if there is none.
	Create Verb = "create"
	// Get reads artifacts.
	Get Verb = "get"
	// Delete ends the session.
	Delete Verb = "delete"
)

// ErrUnavailable tells a caller that the question could not be asked; why is for the
// log alone.
var ErrUnavailable = errors.New("callers can't be authorized at the moment; try again")

// Authorizer tells whether a caller may use a session. An error means that the
// question could not be asked.
type Authorizer interface {
	Allowed(ctx context.Context, caller *authn.Caller, verb Verb, namespace, session string) (bool, error)
	// MayUse tells whether the caller may have sessions made from a template; empty
	// is none in particular.
	MayUse(ctx context.Context, caller *authn.Caller, namespace, template string) (bool, error)
}

// Anyone lets everyone do everything: whoever started a gateway without a cluster
// allowed it.
type Anyone struct{}

// Allowed implements Authorizer.
func (Anyone) Allowed(context.Context, *authn.Caller, Verb, string, string) (bool, error) {
	return true, nil
}

// MayUse implements Authorizer.
func (Anyone) MayUse(context.Context, *authn.Caller, string, string) (bool, error) {
	return true, nil
}

// attributes are everything that the answer depends on.
type attributes struct {
	caller    [sha256.Size]byte
	verb      string
	resource  string
	namespace string
	name      string
}

// SubjectAccessReview asks the API server's authorizers.
type SubjectAccessReview struct {
	client  client.Client
	observe func(outcome string)
	cache   *reviewcache.Cache[attributes, struct{}]
}

// NewSubjectAccessReview returns an authorizer. observe is told the outcome of
// each review that was asked: allowed, denied or error.
func NewSubjectAccessReview(c client.Client, now func() time.Time, observe func(outcome string)) *SubjectAccessReview {
	return &SubjectAccessReview{
		client:  c,
		observe: observe,
		cache:   reviewcache.New[attributes, struct{}](reviewcache.MaxEntries, now),
	}
}

// Allowed implements Authorizer.
func (s *SubjectAccessReview) Allowed(ctx context.Context, caller *authn.Caller, verb Verb, namespace, session string) (bool, error) {
	return s.ask(ctx, caller, authorizationv1.ResourceAttributes{
		Group:       berthv1alpha1.GroupVersion.Group,
		Version:     berthv1alpha1.GroupVersion.Version,
		Resource:    "sandboxes",
		Subresource: berthv1alpha1.SubresourceSession,
		Verb:        string(verb),
		Namespace:   namespace,
		Name:        session,
	})
}

// MayUse implements Authorizer. The template called default is there for everyone
// who may have sessions.
func (s *SubjectAccessReview) MayUse(ctx context.Context, caller *authn.Caller, namespace, template string) (bool, error) {
	if template == "" || template == berthv1alpha1.DefaultTemplateName {
		return true, nil
	}
	return s.ask(ctx, caller, authorizationv1.ResourceAttributes{
		Group:     berthv1alpha1.GroupVersion.Group,
		Version:   berthv1alpha1.GroupVersion.Version,
		Resource:  "sandboxtemplates",
		Verb:      "use",
		Namespace: namespace,
		Name:      template,
	})
}

// ask asks, or remembers. There is nobody to ask about an anonymous caller: whoever
// started a gateway without authentication allowed all.
func (s *SubjectAccessReview) ask(ctx context.Context, caller *authn.Caller, resource authorizationv1.ResourceAttributes) (bool, error) {
	if caller.Anonymous {
		return true, nil
	}
	key := attributes{caller.ID(), resource.Verb, resource.Resource, resource.Namespace, resource.Name}
	_, allowed, err := s.cache.Get(ctx, key, func(ctx context.Context) (struct{}, bool, error) {
		allowed, err := s.review(ctx, caller, resource)
		return struct{}{}, allowed, err
	})
	if err != nil {
		return false, fmt.Errorf("access review: %w", err)
	}
	return allowed, nil
}

func (s *SubjectAccessReview) review(ctx context.Context, caller *authn.Caller, resource authorizationv1.ResourceAttributes) (bool, error) {
	user := caller.User
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               user.Username,
		UID:                user.UID,
		Groups:             user.Groups,
		ResourceAttributes: &resource,
	}}
	if len(user.Extra) > 0 {
		review.Spec.Extra = make(map[string]authorizationv1.ExtraValue, len(user.Extra))
		for k, v := range user.Extra {
			review.Spec.Extra[k] = authorizationv1.ExtraValue(v)
		}
	}
	if err := s.client.Create(ctx, review); err != nil {
		s.observe("error")
		return false, err
	}
	allowed := review.Status.Allowed && !review.Status.Denied
	if allowed {
		s.observe("allowed")
	} else {
		s.observe("denied")
	}
	return allowed, nil
}
