package authn

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/gateway/reviewcache"
)

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create

// TokenReview authenticates bearer tokens by asking the API server, for one
// audience that every token must have been made for.
type TokenReview struct {
	client   client.Client
	audience string
	now      func() time.Time
	observe  func(outcome string)
	cache    *reviewcache.Cache[[sha256.Size]byte, *Caller]
}

// NewTokenReview returns an authenticator of tokens for audience. observe is
// told the outcome of each review that was asked: allowed, denied or error.
func NewTokenReview(c client.Client, audience string, now func() time.Time, observe func(outcome string)) (*TokenReview, error) {
	if audience == "" {
		return nil, errors.New("TokenReview needs an audience: without one any token of the cluster would be taken")
	}
	return &TokenReview{
		client:   c,
		audience: audience,
		now:      now,
		observe:  observe,
		cache:    reviewcache.New[[sha256.Size]byte, *Caller](reviewcache.MaxEntries, now),
	}, nil
}

// Authenticate implements Authenticator.
func (t *TokenReview) Authenticate(r *http.Request) (*Caller, error) {
	token, err := bearer(r.Header)
	if err != nil {
		return nil, err
	}
	return t.authenticate(r.Context(), token)
}

func (t *TokenReview) authenticate(ctx context.Context, token string) (*Caller, error) {
	caller, allowed, err := t.cache.Get(ctx, sha256.Sum256([]byte(token)), func(ctx context.Context) (*Caller, bool, error) {
		return t.review(ctx, token)
	})
	if err != nil {
		return nil, fmt.Errorf("token review: %w", err)
	}
	if !allowed || caller.expired(t.now()) {
		return nil, ErrInvalidToken
	}
	return caller, nil
}

// review asks the API server. A token is taken only if the answer names our
// audience: an authenticator that knows no audiences answers without any.
func (t *TokenReview) review(ctx context.Context, token string) (*Caller, bool, error) {
	review := &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{t.audience}},
	}
	if err := t.client.Create(ctx, review); err != nil {
		t.observe("error")
		return nil, false, err
	}
	if !review.Status.Authenticated || review.Status.User.Username == "" ||
		!slices.Contains(review.Status.Audiences, t.audience) {
		t.observe("denied")
		return nil, false, nil
	}
	t.observe("allowed")
	caller := newCaller(review.Status.User)
	caller.expires = expiry(token)
	return caller, true, nil
}
