package authn

import (
	"context"
	"crypto/elliptic"
	"errors"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	authenticationv1 "k8s.io/api/authentication/v1"
)

// alwaysAllowed is an API server that takes every token for carol's.
func alwaysAllowed(t *testing.T, now func() time.Time) *TokenReview {
	t.Helper()
	return reviewing(t, "carol", now)
}

func reviewing(t *testing.T, user string, now func() time.Time) *TokenReview {
	t.Helper()
	a, err := NewTokenReview(reviewer(t, authenticationv1.TokenReviewStatus{
		Authenticated: true, User: authenticationv1.UserInfo{Username: user}, Audiences: []string{audience},
	}), audience, now, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A token's iss says who is asked about it: nobody else is, whatever the answer.
func TestTokensGoToTheirIssuer(t *testing.T) {
	t.Parallel()
	key, other := ecKey(elliptic.P256()), ecKey(elliptic.P256())
	i, c := newIssuer(t, published(t, "k", &key.PublicKey)), newClock()
	e := Either{OIDC: i.authenticator(c), Review: alwaysAllowed(t, c.Now)}
	elsewhere := c.claims(i)
	elsewhere["iss"] = "https://kubernetes.default.svc"
	for name, tc := range map[string]struct{ token, want string }{
		"of the issuer":            {sign(t, jwt.SigningMethodES256, key, object{"kid": "k"}, c.claims(i)), "oidc:" + i.url + "#alice"},
		"of the issuer, forged":    {sign(t, jwt.SigningMethodES256, other, object{"kid": "k"}, c.claims(i)), ""},
		"of another":               {sign(t, jwt.SigningMethodES256, other, object{"kid": "k"}, elsewhere), "carol"},
		"that is no JWT":           {"opaque", "carol"},
		"that is almost a JWT":     {"a.b.c", "carol"},
		"whose claims are a list":  {"e30." + b64([]byte(`["`+i.url+`"]`)) + ".x", "carol"},
		"whose issuer is a number": {"e30." + b64([]byte(`{"iss":1}`)) + ".x", "carol"},
	} {
		caller, err := authenticate(e, tc.token)
		switch {
		case tc.want == "":
			if !errors.Is(err, ErrInvalidToken) {
				t.Errorf("a token %s: caller %+v, error %v; want that it is not taken", name, caller, err)
			}
		case err != nil || caller.Owner() != tc.want:
			t.Errorf("a token %s: caller %+v, error %v; want %s", name, caller, err, tc.want)
		}
	}
}

// A cluster whose users are called as ours are can't speak for them.
func TestClusterUsersAreNotTakenForTheIssuers(t *testing.T) {
	t.Parallel()
	i, c := newIssuer(t), newClock()
	for user, taken := range map[string]bool{"oidc:" + i.url + "#alice": false, "oidc:alice": true, i.url + "#alice": true} {
		_, err := authenticate(Either{OIDC: i.authenticator(c), Review: reviewing(t, user, c.Now)}, "opaque")
		if (err == nil) != taken || err != nil && !errors.Is(err, ErrInvalidToken) {
			t.Errorf("%s: error %v, want taken %v", user, err, taken)
		}
	}
}

// What nobody has checked yet is read without a fault, whatever it is.
func FuzzClaimed(f *testing.F) {
	f.Add("a.b.c")
	f.Add("e30.eyJpc3MiOiJ4IiwiZXhwIjoxfQ.x")
	f.Add("e30.eyJleHAiOjFlMzAwfQ.x")
	f.Fuzz(func(t *testing.T, token string) {
		if end := expiry(token); end.Before(time.Time{}) {
			t.Errorf("expiry(%q) = %s", token, end)
		}
	})
}

// The parser of tokens refuses all that the issuer hasn't signed.
func FuzzOIDC(f *testing.F) {
	key := ecKey(elliptic.P256())
	c := newClock()
	set := &keySet{now: c.Now, fetch: func(context.Context) ([]publicKey, error) {
		return []publicKey{{"k", []string{"ES256"}, &key.PublicKey}}, nil
	}}
	i := newIssuer(f)
	o := i.authenticator(c)
	o.keys = set
	good := sign(f, jwt.SigningMethodES256, key, object{"kid": "k"}, c.claims(i))
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		caller, _, err := o.verify(t.Context(), token)
		if err != nil || caller != nil && token != good {
			t.Errorf("verify(%q) = %+v, %v", token, caller, err)
		}
	})
}
