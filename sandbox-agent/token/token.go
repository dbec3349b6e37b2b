// Package token signs and verifies what lets a caller speak to one agent: an
// EdDSA JWT per request, bound to namespace, pod UID, method and path, good
// for a minute and once.
package token

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Lifetime is the longest time between iat and exp.
const Lifetime = 60 * time.Second

// Claims of a request token.
type Claims struct {
	Audience string `json:"aud"` // <namespace>/<pod UID>
	Method   string `json:"htm"`
	Path     string `json:"htu"` // URL path, no query
	IssuedAt int64  `json:"iat"` // Unix seconds
	Expires  int64  `json:"exp"`
	ID       string `json:"jti"` // 128 random bits, lower-case hex
}

// Audience names one pod, so that a pod that inherited another's address
// refuses what was meant for that one.
func Audience(namespace, podUID string) string { return namespace + "/" + podUID }

// NewClaims returns claims for one request, issued now.
func NewClaims(audience, method, path string, now time.Time) Claims {
	var id [16]byte
	rand.Read(id[:]) // never fails (crypto/rand)
	return Claims{
		Audience: audience,
		Method:   method,
		Path:     path,
		IssuedAt: now.Unix(),
		Expires:  now.Add(Lifetime).Unix(),
		ID:       hex.EncodeToString(id[:]),
	}
}

// Sign returns the compact JWT of c, signed with key and naming it by kid.
func Sign(c Claims, kid string, key ed25519.PrivateKey) (string, error) {
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, c)
	t.Header["kid"] = kid
	s, err := t.SignedString(key)
	if err != nil {
		return "", fmt.Errorf("sign request token with key %q: %w", kid, err)
	}
	return s, nil
}

// jwt.Claims wants these; Verifier checks the claims itself.

func (c Claims) GetAudience() (jwt.ClaimStrings, error) { return jwt.ClaimStrings{c.Audience}, nil }
func (c Claims) GetExpirationTime() (*jwt.NumericDate, error) {
	return jwt.NewNumericDate(time.Unix(c.Expires, 0)), nil
}
func (c Claims) GetIssuedAt() (*jwt.NumericDate, error) {
	return jwt.NewNumericDate(time.Unix(c.IssuedAt, 0)), nil
}
func (c Claims) GetNotBefore() (*jwt.NumericDate, error) { return nil, nil }
func (c Claims) GetIssuer() (string, error)              { return "", nil }
func (c Claims) GetSubject() (string, error)             { return "", nil }
