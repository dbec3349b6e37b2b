package authn

import (
	"net/http"
	"strings"
)

// Either takes the tokens of an OIDC issuer and those that the API server knows.
// The token's own iss says who is asked, and only that one is.
type Either struct {
	OIDC   *OIDC
	Review *TokenReview
}

// Authenticate implements Authenticator.
func (e Either) Authenticate(r *http.Request) (*Caller, error) {
	token, err := bearer(r.Header)
	if err != nil {
		return nil, err
	}
	issuer := e.OIDC.options.Issuer
	if c, ok := claimed(token); ok && c.Issuer == issuer {
		return e.OIDC.authenticate(r.Context(), token)
	}
	caller, err := e.Review.authenticate(r.Context(), token)
	if err == nil && strings.HasPrefix(caller.User.Username, OIDCUser(issuer, "")) {
		// A cluster may call its users what it likes: that name is another's here.
		return nil, ErrInvalidToken
	}
	return caller, err
}
