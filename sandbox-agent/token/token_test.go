package token

import (
	"crypto/ed25519"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

var now = time.Unix(1_800_000_000, 0)

func fixture(t testing.TB) (*Verifier, ed25519.PrivateKey) {
	t.Helper()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	keys := map[string]ed25519.PublicKey{"key-0001": key.Public().(ed25519.PublicKey)}
	return NewVerifier("ns/uid", keys, func() time.Time { return now }), key
}

func sign(t testing.TB, key ed25519.PrivateKey, c Claims) string {
	t.Helper()
	s, err := Sign(c, "key-0001", key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestVerify(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Claims)
		ok     bool
	}{
		"as issued":             {func(*Claims) {}, true},
		"in its last second":    {func(c *Claims) { c.IssuedAt -= 59; c.Expires -= 59 }, true},
		"in the second after":   {func(c *Claims) { c.IssuedAt -= 60; c.Expires -= 60 }, false},
		"clock ahead by 30 s":   {func(c *Claims) { c.IssuedAt += 30; c.Expires += 30 }, true},
		"clock ahead by 31 s":   {func(c *Claims) { c.IssuedAt += 31; c.Expires += 31 }, false},
		"lifetime of 61 s":      {func(c *Claims) { c.Expires++ }, false},
		"expires when issued":   {func(c *Claims) { c.Expires = c.IssuedAt }, false},
		"other pod":             {func(c *Claims) { c.Audience = "ns/other" }, false},
		"audience as a prefix":  {func(c *Claims) { c.Audience = "ns/uid2" }, false},
		"other method":          {func(c *Claims) { c.Method = "get" }, false},
		"other path":            {func(c *Claims) { c.Path = "/v1/exec/" }, false},
		"jti not hex":           {func(c *Claims) { c.ID = strings.Repeat("z", 32) }, false},
		"jti too long":          {func(c *Claims) { c.ID += "00" }, false},
		"far past, overflowing": {func(c *Claims) { c.IssuedAt = -1 << 63; c.Expires = 1<<63 - 1 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			v, key := fixture(t)
			claims := NewClaims("ns/uid", http.MethodPost, "/v1/exec", now)
			c.change(&claims)
			if err := v.Verify(sign(t, key, claims), http.MethodPost, "/v1/exec"); (err == nil) != c.ok {
				t.Errorf("want accepted %v, got %v", c.ok, err)
			}
		})
	}
}

// TestReplay: refused for as long as the token could be accepted, remembered
// no longer.
func TestReplay(t *testing.T) {
	v, key := fixture(t)
	at := now
	v.now = func() time.Time { return at }
	compact := sign(t, key, NewClaims("ns/uid", http.MethodPost, "/v1/exec", now))
	if err := v.Verify(compact, http.MethodPost, "/v1/exec"); err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{0, time.Second, 59 * time.Second} {
		at = now.Add(after)
		if err := v.Verify(compact, http.MethodPost, "/v1/exec"); !errors.Is(err, ErrReplayed) {
			t.Errorf("after %v: want ErrReplayed, got %v", after, err)
		}
	}
	at = now.Add(2 * Lifetime)
	fresh := sign(t, key, NewClaims("ns/uid", http.MethodPost, "/v1/exec", at))
	if err := v.Verify(fresh, http.MethodPost, "/v1/exec"); err != nil {
		t.Fatal(err)
	}
	if v.seen.count != 1 {
		t.Errorf("want the expired token forgotten, %d are remembered", v.seen.count)
	}
}

func TestReplayCacheIsBounded(t *testing.T) {
	var c replayCache
	var err error
	for i := range maxSeen + 1 {
		err = c.add([16]byte{byte(i), byte(i >> 8), byte(i >> 16)}, 60, 0)
	}
	if err == nil || c.count != maxSeen {
		t.Errorf("want %d and then a refusal, got %d, %v", maxSeen, c.count, err)
	}
}

func TestKeysRoundTrip(t *testing.T) {
	_, key := fixture(t)
	public := key.Public().(ed25519.PublicKey)
	data, err := MarshalKeys(map[string]ed25519.PublicKey{"b": public, "a": public})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := ParseKeys(data)
	if err != nil || len(keys) != 2 || !keys["a"].Equal(public) {
		t.Errorf("want both keys back, got %v, %v", keys, err)
	}
	for _, bad := range []string{
		``, `{}`, `{"keys":[]}`, `[]`,
		`{"keys":[{"kty":"RSA","crv":"Ed25519","kid":"a","x":"AA"}]}`,
		`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"AA"}]}`,
		strings.Replace(string(data), `"kid":"b"`, `"kid":"a"`, 1),
		strings.Replace(string(data), `"kid":"b"`, `"kid":""`, 1),
	} {
		if _, err := ParseKeys([]byte(bad)); err == nil {
			t.Errorf("want %q refused", bad)
		}
	}
}

func FuzzVerify(f *testing.F) {
	v, key := fixture(f)
	claims := NewClaims("ns/uid", http.MethodPost, "/v1/exec", now)
	claims.ID = strings.Repeat("0", 32) // the same in each fuzzing process
	good := sign(f, key, claims)
	f.Add(good)
	f.Add("a.b.c")
	f.Add("..")
	f.Fuzz(func(t *testing.T, compact string) {
		if err := v.Verify(compact, http.MethodPost, "/v1/exec"); err == nil && compact != good {
			t.Errorf("accepted %q", compact)
		}
	})
}

func BenchmarkSignAndVerify(b *testing.B) {
	v, key := fixture(b)
	for b.Loop() {
		compact := sign(b, key, NewClaims("ns/uid", http.MethodPost, "/v1/exec", now))
		if v.seen.count > maxSeen/2 {
			v.seen = replayCache{}
		}
		if err := v.Verify(compact, http.MethodPost, "/v1/exec"); err != nil {
			b.Fatal(err)
		}
	}
}
