package token

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

type jwkSet struct {
	Keys []jwk `json:"keys"`
}

// jwk is an Ed25519 public key as RFC 8037 writes it.
type jwk struct {
	KeyType string `json:"kty"`
	Curve   string `json:"crv"`
	KeyID   string `json:"kid"`
	X       string `json:"x"`
}

// MarshalKeys returns keys, by kid, as a JWK Set. The same keys give the same
// bytes.
func MarshalKeys(keys map[string]ed25519.PublicKey) ([]byte, error) {
	set := jwkSet{Keys: []jwk{}}
	for _, kid := range slices.Sorted(maps.Keys(keys)) {
		x := base64.RawURLEncoding.EncodeToString(keys[kid])
		set.Keys = append(set.Keys, jwk{KeyType: "OKP", Curve: "Ed25519", KeyID: kid, X: x})
	}
	return json.Marshal(set)
}

// ParseKeys reads a JWK Set. Keys of another type are an error rather than
// ignored: the set is ours alone.
func ParseKeys(data []byte) (map[string]ed25519.PublicKey, error) {
	var set jwkSet
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, fmt.Errorf("JWK Set: %w", err)
	}
	keys := make(map[string]ed25519.PublicKey, len(set.Keys))
	for i, k := range set.Keys {
		if k.KeyType != "OKP" || k.Curve != "Ed25519" || k.KeyID == "" {
			return nil, fmt.Errorf("JWK Set: key %d: want kty OKP, crv Ed25519 and a kid", i)
		}
		if _, dup := keys[k.KeyID]; dup {
			return nil, fmt.Errorf("JWK Set: kid %q appears twice", k.KeyID)
		}
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || len(x) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("JWK Set: key %q: x is not %d base64url bytes", k.KeyID, ed25519.PublicKeySize)
		}
		keys[k.KeyID] = x
	}
	if len(keys) == 0 {
		return nil, errors.New("JWK Set: no keys")
	}
	return keys, nil
}
