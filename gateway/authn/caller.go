// Package authn tells who calls the gateway.
package authn

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// ErrUnauthenticated means that a request carries no token that is taken for this
// gateway. It says no more than that.
var ErrUnauthenticated = errors.New("a bearer token for this gateway is required")

// ErrInvalidToken is ErrUnauthenticated of a request that has a token, or something
// in its place.
var ErrInvalidToken = fmt.Errorf("%w, this one is not taken", ErrUnauthenticated)

// Authenticator names the caller of a request. It returns an error that is
// ErrUnauthenticated when the request itself is at fault, and another one when
// the question could not be asked.
type Authenticator interface {
	Authenticate(r *http.Request) (*Caller, error)
}

// Caller is an authenticated identity. It is shared between requests: nobody
// changes it.
type Caller struct {
	// User is what the API server calls the caller. Its Username is the owner of
	// the sessions that the caller makes.
	User authenticationv1.UserInfo
	// Anonymous is a caller of a gateway without authentication, on loopback.
	// It owns nothing and reaches only sessions that have no owner.
	Anonymous bool

	id        [sha256.Size]byte
	namespace string
	// expires is the end of the token that named the caller; zero if it has none.
	expires time.Time
}

// serviceAccountPrefix begins the user name of every service account; the
// namespace follows.
const serviceAccountPrefix = "system:serviceaccount:"

// newCaller computes what requests ask for again and again.
func newCaller(user authenticationv1.UserInfo) *Caller {
	// Encoding can't fail: a UserInfo holds strings only, and maps are sorted.
	identity, _ := json.Marshal(user)
	c := &Caller{User: user, id: sha256.Sum256(identity)}
	if rest, ok := strings.CutPrefix(user.Username, serviceAccountPrefix); ok {
		c.namespace, _, _ = strings.Cut(rest, ":")
	}
	return c
}

// ID is the same for two callers only if everything that an authorizer looks at
// is the same.
func (c *Caller) ID() [sha256.Size]byte { return c.id }

// Owner is the value of spec.owner of the caller's sessions; empty for an
// anonymous one.
func (c *Caller) Owner() string {
	if c.Anonymous {
		return ""
	}
	return c.User.Username
}

// Owns tells whether a session of that owner is the caller's to use. A session
// without an owner is anybody's whom the authorizer lets.
func (c *Caller) Owns(owner string) bool { return owner == "" || owner == c.Owner() }

// Namespace is a service account's own namespace, and empty for other callers.
func (c *Caller) Namespace() string { return c.namespace }

// expired tells whether the caller's token has ended, whatever is remembered of it.
func (c *Caller) expired(now time.Time) bool { return !c.expires.IsZero() && !now.Before(c.expires) }

type contextKey struct{}

// WithCaller returns a context that carries c.
func WithCaller(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// FromContext returns the caller that WithCaller stored. A handler that is
// reached without one was put together wrongly; it gets none, and must refuse.
func FromContext(ctx context.Context) (*Caller, bool) {
	c, ok := ctx.Value(contextKey{}).(*Caller)
	return c, ok
}
