package authn

import (
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
)

func TestOIDCTakesTheSignaturesThatItSays(t *testing.T) {
	t.Parallel()
	p256, p384, ed := ecKey(elliptic.P256()), ecKey(elliptic.P384()), edKey()
	i := newIssuer(t, published(t, "rsa", &rsaKey().PublicKey), published(t, "p256", &p256.PublicKey),
		published(t, "p384", &p384.PublicKey), published(t, "ed", ed.Public()))
	c := newClock()
	o := i.authenticator(c)
	for method, with := range map[jwt.SigningMethod]struct {
		kid string
		key any
	}{
		jwt.SigningMethodRS256: {"rsa", rsaKey()}, jwt.SigningMethodRS384: {"rsa", rsaKey()}, jwt.SigningMethodRS512: {"rsa", rsaKey()},
		jwt.SigningMethodPS256: {"rsa", rsaKey()}, jwt.SigningMethodPS384: {"rsa", rsaKey()}, jwt.SigningMethodPS512: {"rsa", rsaKey()},
		jwt.SigningMethodES256: {"p256", p256}, jwt.SigningMethodES384: {"p384", p384}, jwt.SigningMethodEdDSA: {"ed", ed},
	} {
		caller, err := authenticate(o, sign(t, method, with.key, object{"kid": with.kid}, c.claims(i)))
		if err != nil || caller.Owner() != "oidc:"+i.url+"#alice" || caller.Namespace() != "" {
			t.Errorf("%s: caller %+v, error %v; want alice", method.Alg(), caller, err)
		}
	}
	if n := i.asked.Load(); n != 1 {
		t.Errorf("the issuer was asked for its keys %d times, want once", n)
	}
}

// What is wrong with one thing about a token is enough.
func TestOIDCRefusesTokens(t *testing.T) {
	t.Parallel()
	key, other := ecKey(elliptic.P256()), ecKey(elliptic.P256())
	i := newIssuer(t, published(t, "k", &key.PublicKey), published(t, "rsa", &rsaKey().PublicKey))
	c := newClock()
	o := i.authenticator(c)
	es, kid := jwt.SigningMethodES256, object{"kid": "k"}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: must(x509.MarshalPKIXPublicKey(&rsaKey().PublicKey))})
	with := func(change object) jwt.MapClaims {
		claims := c.claims(i)
		for k, v := range change {
			if v == nil {
				delete(claims, k)
			} else {
				claims[k] = v
			}
		}
		return claims
	}
	good := sign(t, es, key, kid, c.claims(i))
	if _, err := authenticate(o, good); err != nil {
		t.Fatalf("a good token was refused: %v", err)
	}
	tests := map[string]string{
		"another issuer":             sign(t, es, key, kid, with(object{"iss": i.url + "/"})),
		"no issuer":                  sign(t, es, key, kid, with(object{"iss": nil})),
		"another audience":           sign(t, es, key, kid, with(object{"aud": "them"})),
		"no audience":                sign(t, es, key, kid, with(object{"aud": nil})),
		"expired":                    sign(t, es, key, kid, with(object{"exp": c.in(0)})),
		"expired, within the leeway": sign(t, es, key, kid, with(object{"exp": c.in(-time.Second)})),
		"no end":                     sign(t, es, key, kid, with(object{"exp": nil})),
		"an end that is no number":   sign(t, es, key, kid, with(object{"exp": "tomorrow"})),
		"not yet":                    sign(t, es, key, kid, with(object{"nbf": c.in(31 * time.Second)})),
		"issued in the future":       sign(t, es, key, kid, with(object{"iat": c.in(31 * time.Second)})),
		"no subject":                 sign(t, es, key, kid, with(object{"sub": nil})),
		"empty subject":              sign(t, es, key, kid, with(object{"sub": ""})),
		"subject of another type":    sign(t, es, key, kid, with(object{"sub": []string{"alice"}})),
		"newline in the subject":     sign(t, es, key, kid, with(object{"sub": "alice\nbob"})),
		"NUL in the subject":         sign(t, es, key, kid, with(object{"sub": "alice\x00"})),
		"invisible in the subject":   sign(t, es, key, kid, with(object{"sub": "alice\u202e"})),
		"subject of 256 bytes":       sign(t, es, key, kid, with(object{"sub": strings.Repeat("a", 256)})),
		"groups that are a number":   sign(t, es, key, kid, with(object{"groups": 1})),
		"groups with a number":       sign(t, es, key, kid, with(object{"groups": []any{"a", 1}})),
		"newline in a group":         sign(t, es, key, kid, with(object{"groups": []any{"a\nb"}})),
		"another's key":              sign(t, es, other, kid, c.claims(i)),
		"unknown key id":             sign(t, es, key, object{"kid": "x"}, c.claims(i)),
		"no key id, several keys":    sign(t, es, key, nil, c.claims(i)),
		"key id is a path":           sign(t, es, key, object{"kid": "../../etc/passwd"}, c.claims(i)),
		"key id is a URL":            sign(t, es, key, object{"kid": i.url + "/keys"}, c.claims(i)),
		"key id is a number":         sign(t, es, key, object{"kid": 1}, c.claims(i)),
		"key in the header":          sign(t, es, other, object{"kid": "x", "jwk": published(t, "x", &other.PublicKey)}, c.claims(i)),
		"key of another kind":        sign(t, es, key, object{"kid": "rsa"}, c.claims(i)),
		"critical header":            sign(t, es, key, object{"kid": "k", "crit": []string{"b64"}, "b64": true}, c.claims(i)),
		"none":                       sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, kid, c.claims(i)),
		"HMAC by the public key":     sign(t, jwt.SigningMethodHS256, public, object{"kid": "rsa"}, c.claims(i)),
		"no signature":               good[:strings.LastIndex(good, ".")+1],
		"of two parts":               good[:strings.LastIndex(good, ".")],
		"not a JWT":                  "alice",
		"padding":                    good + "=",
		"oversize":                   strings.Repeat("a", maxToken+1),
	}
	for name, token := range tests {
		caller, err := authenticate(o, token)
		if !errors.Is(err, ErrInvalidToken) {
			t.Errorf("%s: caller %+v, error %v; want that the token is not taken", name, caller, err)
		}
	}
}

// The bounds, from inside.
func TestOIDCTakesTokensAtTheLimits(t *testing.T) {
	t.Parallel()
	key := ecKey(elliptic.P256())
	i := newIssuer(t, published(t, "k", &key.PublicKey))
	c := newClock()
	o := i.authenticator(c)
	for name, change := range map[string]object{
		"one second left":            {"exp": c.in(time.Second)},
		"clock 30 s ahead, nbf":      {"nbf": c.in(30 * time.Second)},
		"clock 30 s ahead, iat":      {"iat": c.in(30 * time.Second)},
		"one audience among several": {"aud": []string{"them", audience}},
		"subject of 255 bytes":       {"sub": strings.Repeat("a", 255)},
		"no issue date":              {"iat": nil},
	} {
		claims := c.claims(i)
		for k, v := range change {
			if v == nil {
				delete(claims, k)
				continue
			}
			claims[k] = v
		}
		if _, err := authenticate(o, sign(t, jwt.SigningMethodES256, key, object{"kid": "k"}, claims)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The only key needs no id.
	if _, err := authenticate(o, sign(t, jwt.SigningMethodES256, key, nil, c.claims(i))); err != nil {
		t.Errorf("no key id, one key: %v", err)
	}
}

// No subject or group is one of Kubernetes' own.
func TestOIDCCallersAreNobodyElse(t *testing.T) {
	t.Parallel()
	key := ecKey(elliptic.P256())
	i := newIssuer(t, published(t, "k", &key.PublicKey))
	c := newClock()
	o := i.authenticator(c)
	for _, subject := range []string{"system:serviceaccount:team-a:builder", "system:admin", "oidc:https://other#alice", "#alice", "kubernetes-admin"} {
		claims := c.claims(i)
		claims["sub"] = subject
		claims["groups"] = []string{"system:masters", "developers", "system:authenticated"}
		caller, err := authenticate(o, sign(t, jwt.SigningMethodES256, key, object{"kid": "k"}, claims))
		if err != nil {
			t.Errorf("%s: %v", subject, err)
			continue
		}
		if want := "oidc:" + i.url + "#" + subject; caller.Owner() != want || caller.Namespace() != "" || caller.Anonymous {
			t.Errorf("%s: caller %+v, want %s without a namespace", subject, caller, want)
		}
		if diff := cmp.Diff([]string{"developers"}, caller.User.Groups); diff != "" {
			t.Errorf("%s: groups (-want +got):\n%s", subject, diff)
		}
	}
}

// What is remembered of a token ends with the token.
func TestRememberedTokensEnd(t *testing.T) {
	t.Parallel()
	key := ecKey(elliptic.P256())
	i := newIssuer(t, published(t, "k", &key.PublicKey))
	c := newClock()
	claims := c.claims(i)
	claims["exp"] = c.in(10 * time.Second)
	token := sign(t, jwt.SigningMethodES256, key, object{"kid": "k"}, claims)
	for name, a := range map[string]Authenticator{"OIDC": i.authenticator(c), "TokenReview": alwaysAllowed(t, c.Now)} {
		if _, err := authenticate(a, token); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		c.advance(9 * time.Second)
		if _, err := authenticate(a, token); err != nil {
			t.Errorf("%s, a second before its end: %v", name, err)
		}
		c.advance(time.Second)
		if _, err := authenticate(a, token); !errors.Is(err, ErrInvalidToken) {
			t.Errorf("%s, at its end: %v, want that it is not taken", name, err)
		}
		c.advance(-10 * time.Second)
	}
}

func TestOIDCOptionsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options OIDCOptions
		want    string
	}{
		"no audience":       {OIDCOptions{Issuer: "https://issuer"}, "audience"},
		"no issuer":         {OIDCOptions{Audience: "us"}, "want https://HOST"},
		"plain HTTP":        {OIDCOptions{Audience: "us", Issuer: "http://issuer"}, "not https"},
		"a fragment":        {OIDCOptions{Audience: "us", Issuer: "https://issuer#x"}, "want https://HOST"},
		"a query":           {OIDCOptions{Audience: "us", Issuer: "https://issuer?x"}, "want https://HOST"},
		"a password":        {OIDCOptions{Audience: "us", Issuer: "https://a:b@issuer"}, "want https://HOST"},
		"too long":          {OIDCOptions{Audience: "us", Issuer: "https://" + strings.Repeat("a", 512)}, "at most 512"},
		"no such file":      {OIDCOptions{Audience: "us", Issuer: "https://issuer", CAFile: "absent.pem"}, "absent.pem"},
		"no certificate in": {OIDCOptions{Audience: "us", Issuer: "https://issuer", CAFile: "oidc_test.go"}, "no certificate"},
	} {
		if _, err := NewOIDC(tc.options, time.Now); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want it to contain %q", name, err, tc.want)
		}
	}
}
