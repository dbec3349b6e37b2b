package authn

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// maxToken bounds a bearer token, in bytes: more is no token that anybody makes.
const maxToken = 16 << 10

// errNoBearer is a request whose Authorization isn't one bearer token.
var errNoBearer = fmt.Errorf("%w: not one Authorization header with a bearer token of at most %d bytes", ErrInvalidToken, maxToken)

// bearer returns the token of exactly one Authorization header (RFC 6750).
func bearer(h http.Header) (string, error) {
	values := h.Values("Authorization")
	switch len(values) {
	case 0:
		return "", ErrUnauthenticated
	case 1:
	default:
		return "", errNoBearer
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken || !isToken68(token) {
		return "", errNoBearer
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

// unverified are claims that nobody has checked. They choose who is asked about a
// token, and make an answer end sooner; they prove nothing.
type unverified struct {
	Issuer  string   `json:"iss"`
	Expires *float64 `json:"exp"`
}

// claimed reads a token's claims, if it is a JWT.
func claimed(token string) (c unverified, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &c) != nil {
		return unverified{}, false
	}
	return c, true
}

// farthest is the last second that an RFC 3339 time can name.
const farthest = 253402300799

// expiry is the token's own end; the zero time if it names none.
func expiry(token string) time.Time {
	c, ok := claimed(token)
	if !ok || c.Expires == nil || !(*c.Expires < farthest) {
		return time.Time{}
	}
	return time.Unix(int64(max(*c.Expires, 0)), 0)
}
