package authn

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/gateway/reviewcache"
)

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create

// maxToken bounds a bearer token: more is no token that an API server makes.
const maxToken = 16 << 10

// TokenReview authenticates bearer tokens by asking the API server, for one
// audience that every token must have been made for.
type TokenReview struct {
	client   client.Client
	audience string
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
	caller, allowed, err := t.cache.Get(r.Context(), sha256.Sum256([]byte(token)), func(ctx context.Context) (*Caller, bool, error) {
		return t.review(ctx, token)
	})
	if err != nil {
		return nil, fmt.Errorf("token review: %w", err)
	}
	if !allowed {
		return nil, ErrUnauthenticated
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
	return newCaller(review.Status.User), true, nil
}

// bearer returns the token of exactly one Authorization header.
func bearer(h http.Header) (string, error) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", ErrUnauthenticated
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken || !isToken68(token) {
		return "", ErrUnauthenticated
	}
	return token, nil
}

// isToken68 tells whether s consists of what RFC 6750 lets a bearer token hold.
func isToken68(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("-._~+/=", c) >= 0:
		default:
			return false
		}
	}
	return true
}
