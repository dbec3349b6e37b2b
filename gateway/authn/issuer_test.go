package authn

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const audience = "us"

// issuer is an OpenID provider on loopback.
type issuer struct {
	t   testing.TB
	url string
	// asked counts how often its keys were asked for.
	asked atomic.Int64

	mu     sync.Mutex
	keys   []object
	answer func(w http.ResponseWriter, r *http.Request) bool // takes a request over
}

type object = map[string]any

func newIssuer(t testing.TB, keys ...object) *issuer {
	t.Helper()
	i := &issuer{t: t, keys: keys}
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	i.url = server.URL
	return i
}

// ServeHTTP implements http.Handler.
func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	keys, answer := i.keys, i.answer
	i.mu.Unlock()
	if answer != nil && answer(w, r) {
		return
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		reply(w, object{"issuer": i.url, "jwks_uri": i.url + "/keys"})
	case "/keys":
		i.asked.Add(1)
		reply(w, object{"keys": keys})
	default:
		http.NotFound(w, r)
	}
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(err) // what a test made can't be encoded
	}
}

func (i *issuer) rotate(keys ...object) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = keys
}

func (i *issuer) take(answer func(http.ResponseWriter, *http.Request) bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = answer
}

// clock is a time that the test sets.
type clock struct{ now atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.now.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
	return c
}

func (c *clock) Now() time.Time             { return time.Unix(c.now.Load(), 0) }
func (c *clock) advance(d time.Duration)    { c.now.Add(int64(d / time.Second)) }
func (c *clock) in(d time.Duration) float64 { return float64(c.now.Load() + int64(d/time.Second)) }
func (c *clock) claims(i *issuer) jwt.MapClaims {
	return jwt.MapClaims{"iss": i.url, "aud": audience, "sub": "alice", "iat": c.in(0), "exp": c.in(time.Hour)}
}

func (i *issuer) authenticator(c *clock) *OIDC {
	i.t.Helper()
	o, err := NewOIDC(OIDCOptions{Issuer: i.url, Audience: audience, GroupsClaim: "groups", Log: slog.New(slog.DiscardHandler)}, c.Now)
	if err != nil {
		i.t.Fatal(err)
	}
	return o
}

func authenticate(a Authenticator, token string) (*Caller, error) {
	r, err := http.NewRequest(http.MethodPost, "http://gateway/mcp", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return a.Authenticate(r)
}

func sign(t testing.TB, method jwt.SigningMethod, key any, header object, claims jwt.Claims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	for k, v := range header {
		token.Header[k] = v
	}
	signed, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// published is a public key as a JWK.
func published(t testing.TB, kid string, key crypto.PublicKey) object {
	t.Helper()
	switch k := key.(type) {
	case *rsa.PublicKey:
		return object{"kty": "RSA", "kid": kid, "use": "sig", "n": b64(k.N.Bytes()), "e": b64(big.NewInt(int64(k.E)).Bytes())}
	case *ecdsa.PublicKey:
		point, err := k.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		half := len(point) / 2
		return object{"kty": "EC", "kid": kid, "crv": k.Params().Name, "x": b64(point[1 : 1+half]), "y": b64(point[1+half:])}
	case ed25519.PublicKey:
		return object{"kty": "OKP", "kid": kid, "crv": "Ed25519", "x": b64(k)}
	}
	t.Fatalf("key of type %T", key)
	return nil
}

var rsaKey = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })

func ecKey(curve elliptic.Curve) *ecdsa.PrivateKey {
	return must(ecdsa.GenerateKey(curve, rand.Reader))
}

func edKey() ed25519.PrivateKey {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return must(key, err)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
