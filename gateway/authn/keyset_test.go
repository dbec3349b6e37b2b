package authn

import (
	"crypto/elliptic"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Keys that the issuer adds are found by their id, at a bounded rate.
func TestUnknownKeysAreAskedForAtABoundedRate(t *testing.T) {
	t.Parallel()
	first, second := ecKey(elliptic.P256()), ecKey(elliptic.P256())
	i := newIssuer(t, published(t, "first", &first.PublicKey))
	c := newClock()
	o := i.authenticator(c)
	by := func(kid string, n int) string {
		claims := c.claims(i)
		claims["jti"] = n // another token
		if kid == "second" {
			return sign(t, jwt.SigningMethodES256, second, object{"kid": kid}, claims)
		}
		return sign(t, jwt.SigningMethodES256, first, object{"kid": kid}, claims)
	}
	if _, err := authenticate(o, by("first", 0)); err != nil {
		t.Fatal(err)
	}
	i.rotate(published(t, "first", &first.PublicKey), published(t, "second", &second.PublicKey))
	for n := range 100 {
		if _, err := authenticate(o, by(fmt.Sprint("unknown-", n), n)); !errors.Is(err, ErrInvalidToken) {
			t.Fatalf("unknown key: %v", err)
		}
	}
	if n := i.asked.Load(); n != 1 {
		t.Errorf("asked %d times within %s, want once", n, fetchInterval)
	}
	c.advance(fetchInterval)
	if _, err := authenticate(o, by("second", 1)); err != nil {
		t.Errorf("the new key: %v", err)
	}
	if n := i.asked.Load(); n != 2 {
		t.Errorf("asked %d times, want twice", n)
	}
}

// A key that the issuer withdraws is not taken for long.
func TestWithdrawnKeysGo(t *testing.T) {
	t.Parallel()
	old, young := ecKey(elliptic.P256()), ecKey(elliptic.P256())
	i := newIssuer(t, published(t, "old", &old.PublicKey))
	c := newClock()
	o := i.authenticator(c)
	token := func() string { return sign(t, jwt.SigningMethodES256, old, object{"kid": "old"}, c.claims(i)) }
	if _, err := authenticate(o, token()); err != nil {
		t.Fatal(err)
	}
	i.rotate(published(t, "young", &young.PublicKey))
	c.advance(refreshAfter)
	if _, err := authenticate(o, token()); err != nil {
		t.Errorf("while the keys are asked for: %v", err)
	}
	o.keys.mu.Lock()
	running := o.keys.running
	o.keys.mu.Unlock()
	if running != nil {
		<-running
	}
	c.advance(time.Second)
	if _, err := authenticate(o, token()); !errors.Is(err, ErrInvalidToken) {
		t.Errorf("the withdrawn key: %v, want that it is not taken", err)
	}
}

// An issuer that doesn't answer delays only tokens of keys that aren't known.
func TestCallsGoOnWithKnownKeysWhileTheIssuerIsSlow(t *testing.T) {
	t.Parallel()
	key := ecKey(elliptic.P256())
	i := newIssuer(t, published(t, "k", &key.PublicKey))
	c := newClock()
	o := i.authenticator(c)
	if _, err := authenticate(o, sign(t, jwt.SigningMethodES256, key, object{"kid": "k"}, c.claims(i))); err != nil {
		t.Fatal(err)
	}
	hangs, release := make(chan struct{}), make(chan struct{})
	i.take(func(http.ResponseWriter, *http.Request) bool {
		close(hangs)
		<-release
		return false
	})
	defer close(release)
	c.advance(refreshAfter)
	for n := range 10 {
		claims := c.claims(i)
		claims["jti"] = n
		if _, err := authenticate(o, sign(t, jwt.SigningMethodES256, key, object{"kid": "k"}, claims)); err != nil {
			t.Errorf("a known key: %v", err)
		}
	}
	<-hangs
}

// What an issuer may answer, and what is said of it. Nothing of it is a refusal of
// the token: it could not be checked.
func TestIssuersThatAnswerWrongly(t *testing.T) {
	t.Parallel()
	key := ecKey(elliptic.P256())
	elsewhere := newIssuer(t, published(t, "k", &key.PublicKey))
	configuration := func(document object) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/.well-known/openid-configuration" {
				return false
			}
			if document["issuer"] == nil {
				document["issuer"] = "http://" + r.Host
			}
			reply(w, document)
			return true
		}
	}
	keys := func(text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/keys" {
				fmt.Fprint(w, text)
			}
			return r.URL.Path == "/keys"
		}
	}
	weak := published(t, "k", &rsaKey().PublicKey)
	weak["n"] = b64(append([]byte{0x80}, make([]byte, 126)...)) // and even
	off := published(t, "k", &key.PublicKey)
	off["y"] = off["x"]
	tests := map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		want   string
	}{
		"down":                 {func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(503); return true }, "503"},
		"not JSON":             {func(w http.ResponseWriter, _ *http.Request) bool { fmt.Fprint(w, "<html>"); return true }, "configuration"},
		"another's name":       {configuration(object{"issuer": elsewhere.url, "jwks_uri": elsewhere.url + "/keys"}), "calls itself"},
		"keys over plain HTTP": {configuration(object{"jwks_uri": "http://keys.example/keys"}), "not https"},
		"keys in a file":       {configuration(object{"jwks_uri": "file:///etc/passwd"}), "not https"},
		"no keys' address":     {configuration(object{}), "not https"},
		"redirect to another host": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, elsewhere.url+r.URL.Path, http.StatusFound)
			return true
		}, "redirects elsewhere"},
		"redirect for ever": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
			return true
		}, "for ever"},
		"10 MB of keys":              {keys(`{"keys":[` + strings.Repeat(" ", 10<<20) + `]}`), "more than 1048576 bytes"},
		"101 keys":                   {keys(`{"keys":[` + strings.Repeat(`{},`, 100) + `{}]}`), "101 keys"},
		"no keys":                    {keys(`{}`), "no key that signatures"},
		"a key that isn't an object": {keys(`{"keys":[1]}`), "no key that signatures"},
		"a weak key":                 {keysOf(weak), "1016 bits"},
		"a point off the curve":      {keysOf(off), "no key that signatures"},
		"a key for encryption":       {keysOf(with(published(t, "k", &key.PublicKey), "use", "enc")), "not for signatures"},
		"a key to sign with":         {keysOf(with(published(t, "k", &key.PublicKey), "key_ops", []string{"sign"})), "not for signatures"},
		"a key of another's name":    {keysOf(with(published(t, "k", &key.PublicKey), "alg", "HS256")), "not taken"},
		"a secret":                   {keysOf(object{"kty": "oct", "kid": "k", "k": "c2VjcmV0"}), "not taken"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newIssuer(t)
			i.take(tc.answer)
			c := newClock()
			_, err := authenticate(i.authenticator(c), sign(t, jwt.SigningMethodES256, key, object{"kid": "k"}, c.claims(i)))
			if err == nil || errors.Is(err, ErrUnauthenticated) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one that says %q, and no refusal", err, tc.want)
			}
		})
	}
	if n := elsewhere.asked.Load(); n != 0 {
		t.Errorf("another host was asked %d times", n)
	}
}

func keysOf(keys ...object) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/keys" {
			reply(w, object{"keys": keys})
		}
		return r.URL.Path == "/keys"
	}
}

func with(o object, key string, value any) object {
	o[key] = value
	return o
}

// Keys that can't be used don't stand in the way of those that can.
func TestUnusableKeysAreLeftOut(t *testing.T) {
	t.Parallel()
	key := ecKey(elliptic.P256())
	i := newIssuer(t, object{"kty": "oct", "kid": "k"}, object{"kty": "EC", "crv": "P-521", "kid": "k"}, published(t, "k", &key.PublicKey))
	c := newClock()
	if _, err := authenticate(i.authenticator(c), sign(t, jwt.SigningMethodES256, key, object{"kid": "k"}, c.claims(i))); err != nil {
		t.Error(err)
	}
}

// An issuer that was down when the gateway started is asked again.
func TestIssuerThatComesUpLater(t *testing.T) {
	t.Parallel()
	key := ecKey(elliptic.P256())
	i := newIssuer(t, published(t, "k", &key.PublicKey))
	i.take(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(503); return true })
	c := newClock()
	o := i.authenticator(c)
	token := sign(t, jwt.SigningMethodES256, key, object{"kid": "k"}, c.claims(i))
	if _, err := authenticate(o, token); err == nil || errors.Is(err, ErrUnauthenticated) {
		t.Errorf("while it is down: %v, want an error that is no refusal", err)
	}
	i.take(nil)
	if _, err := authenticate(o, token); err == nil {
		t.Error("it was asked again at once")
	}
	c.advance(fetchInterval)
	if _, err := authenticate(o, token); err != nil {
		t.Errorf("once it is up: %v", err)
	}
}

func TestIssuerWithCertificatesOfItsOwn(t *testing.T) {
	t.Parallel()
	key := ecKey(elliptic.P256())
	i := &issuer{t: t, keys: []object{published(t, "k", &key.PublicKey)}}
	server := httptest.NewUnstartedServer(i)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	i.url = server.URL
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newClock()
	for caFile, taken := range map[string]bool{file: true, "": false} {
		o, err := NewOIDC(OIDCOptions{Issuer: i.url, Audience: audience, CAFile: caFile, Log: slog.New(slog.DiscardHandler)}, c.Now)
		if err != nil {
			t.Fatal(err)
		}
		_, err = authenticate(o, sign(t, jwt.SigningMethodES256, key, object{"kid": "k"}, c.claims(i)))
		if (err == nil) != taken || errors.Is(err, ErrUnauthenticated) {
			t.Errorf("certificates in %q: error %v, want taken %v", caFile, err, taken)
		}
	}
}
