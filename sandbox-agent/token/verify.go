package token

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// skew is how far a caller's clock may run ahead of this one.
const skew = 30 * time.Second

// maxToken bounds what is parsed at all.
const maxToken = 4096

// ErrReplayed is a token that was accepted before.
var ErrReplayed = errors.New("token was used before")

// Verifier accepts each good token for one audience once. It is safe for
// concurrent use.
type Verifier struct {
	audience string
	keys     map[string]ed25519.PublicKey
	now      func() time.Time
	parser   *jwt.Parser
	seen     replayCache
}

// NewVerifier returns a verifier of tokens for audience that were signed by
// one of keys. now is the clock.
func NewVerifier(audience string, keys map[string]ed25519.PublicKey, now func() time.Time) *Verifier {
	return &Verifier{
		audience: audience,
		keys:     keys,
		now:      now,
		parser: jwt.NewParser(
			jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}),
			jwt.WithoutClaimsValidation(),
			jwt.WithStrictDecoding(),
		),
	}
}

// Verify accepts compact for one request with method and path. The signature
// is checked before any claim, and only a token that is good in all other
// respects is remembered. An error never holds the token.
func (v *Verifier) Verify(compact, method, path string) error {
	if len(compact) > maxToken {
		return errors.New("token is too long")
	}
	var c Claims
	if _, err := v.parser.ParseWithClaims(compact, &c, v.key); err != nil {
		return fmt.Errorf("token is malformed or its signature wrong: %w", err)
	}
	now := v.now()
	if err := c.check(v.audience, method, path, now); err != nil {
		return err
	}
	id, err := parseID(c.ID)
	if err != nil {
		return err
	}
	return v.seen.add(id, c.Expires, now.Unix())
}

func (v *Verifier) key(t *jwt.Token) (any, error) {
	kid, _ := t.Header["kid"].(string)
	key, ok := v.keys[kid]
	if !ok {
		return nil, errors.New("unknown kid")
	}
	return key, nil
}

func (c Claims) check(audience, method, path string, now time.Time) error {
	switch {
	case c.Audience != audience:
		return errors.New("token is for another pod")
	case c.Method != method || c.Path != path:
		return errors.New("token is for another request")
	case c.Expires <= c.IssuedAt || c.IssuedAt < c.Expires-int64(Lifetime/time.Second):
		return errors.New("token's lifetime is not within 60 s")
	case now.Unix() >= c.Expires:
		return errors.New("token has expired")
	case c.IssuedAt > now.Add(skew).Unix():
		return errors.New("token is from the future")
	}
	return nil
}

func parseID(s string) (id [16]byte, err error) {
	if len(s) != hex.EncodedLen(len(id)) {
		return id, errors.New("token's jti is not 128 bits of hex")
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return id, errors.New("token's jti is not 128 bits of hex")
	}
	return id, nil
}
