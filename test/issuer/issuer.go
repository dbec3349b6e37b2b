// Package issuer is an OpenID Connect provider on loopback for tests.
package issuer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Audience is whom its tokens are for.
const Audience = "berth"

const keyID = "k"

// Issuer signs with one key, by ES256.
type Issuer struct {
	URL    string
	key    *ecdsa.PrivateKey
	server *httptest.Server
}

// Start starts an issuer, which Stop ends.
func Start() (*Issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	point, err := key.PublicKey.Bytes() // SEC 1, uncompressed: 4, x, y
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	i := &Issuer{key: key, server: httptest.NewServer(mux)}
	i.URL = i.server.URL
	b64 := base64.RawURLEncoding.EncodeToString
	for path, document := range map[string]any{
		"/.well-known/openid-configuration": map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"},
		"/keys": map[string]any{"keys": []map[string]string{{
			"kty": "EC", "crv": "P-256", "kid": keyID, "x": b64(point[1:33]), "y": b64(point[33:]),
		}}},
	} {
		text, err := json.Marshal(document)
		if err != nil {
			i.Stop()
			return nil, err
		}
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(text) // who asks sees that it is not whole
		})
	}
	return i, nil
}

// Stop ends the issuer.
func (i *Issuer) Stop() { i.server.Close() }

// Token is one of a member of groups, for an hour.
func (i *Issuer) Token(subject string, groups ...string) (string, error) {
	token := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
		"iss": i.URL, "aud": Audience, "sub": subject, "groups": groups, "exp": time.Now().Add(time.Hour).Unix(),
	})
	token.Header["kid"] = keyID
	return token.SignedString(i.key)
}
