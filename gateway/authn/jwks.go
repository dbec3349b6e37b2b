package authn

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

// Bounds of an issuer's keys.
const (
	maxKeys    = 100
	minRSABits = 2048
	maxRSABits = 8192 // a larger key makes each signature cost milliseconds
)

// algorithms are the signatures that are taken: asymmetric ones, so that nobody
// can sign with what an issuer publishes.
var algorithms = []string{
	"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA",
}

// publicKey is one key of an issuer.
type publicKey struct {
	id         string
	algorithms []string
	key        crypto.PublicKey
}

// jwk is a JSON Web Key (RFC 7517, RFC 7518 §6, RFC 8037).
type jwk struct {
	Type       string   `json:"kty"`
	Use        string   `json:"use"`
	Operations []string `json:"key_ops"`
	ID         string   `json:"kid"`
	Algorithm  string   `json:"alg"`
	Curve      string   `json:"crv"`
	N          string   `json:"n"`
	E          string   `json:"e"`
	X          string   `json:"x"`
	Y          string   `json:"y"`
}

// parseKeys reads a key set. As RFC 7517 §5 has it, keys that it can't use are
// left out; a set of only such keys is an error.
func parseKeys(data []byte) ([]publicKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, fmt.Errorf("decode key set: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("key set has %d keys; at most %d are taken", len(set.Keys), maxKeys)
	}
	var keys []publicKey
	var errs []error
	for i, raw := range set.Keys {
		var k jwk
		err := json.Unmarshal(raw, &k)
		if err == nil {
			var key publicKey
			if key, err = k.public(); err == nil {
				keys = append(keys, key)
				continue
			}
		}
		errs = append(errs, fmt.Errorf("key %d: %w", i, err))
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("key set has no key that signatures can be checked with: %w", errors.Join(errs...))
	}
	return keys, nil
}

func (k *jwk) public() (publicKey, error) {
	out := publicKey{id: k.ID}
	if k.Use != "" && k.Use != "sig" || len(k.Operations) > 0 && !slices.Contains(k.Operations, "verify") {
		return out, errors.New("not for signatures")
	}
	var err error
	switch k.Type + " " + k.Curve {
	case "RSA ":
		out.algorithms = algorithms[:6]
		out.key, err = k.rsa()
	case "EC P-256":
		out.algorithms = []string{"ES256"}
		out.key, err = k.ecdsa(elliptic.P256(), 32)
	case "EC P-384":
		out.algorithms = []string{"ES384"}
		out.key, err = k.ecdsa(elliptic.P384(), 48)
	case "OKP Ed25519":
		out.algorithms = []string{"EdDSA"}
		out.key, err = k.ed25519()
	default:
		err = errors.New("of a kind that is not taken")
	}
	if err == nil && k.Algorithm != "" {
		if !slices.Contains(out.algorithms, k.Algorithm) {
			return out, errors.New("for an algorithm that is not taken, or not its own")
		}
		out.algorithms = []string{k.Algorithm}
	}
	return out, err
}

func (k *jwk) rsa() (*rsa.PublicKey, error) {
	n, errN := base64.RawURLEncoding.DecodeString(k.N)
	e, errE := base64.RawURLEncoding.DecodeString(k.E)
	if err := errors.Join(errN, errE); err != nil {
		return nil, err
	}
	modulus, exponent := new(big.Int).SetBytes(n), new(big.Int).SetBytes(e)
	if bits := modulus.BitLen(); bits < minRSABits || bits > maxRSABits || modulus.Bit(0) == 0 {
		return nil, fmt.Errorf("RSA modulus of %d bits, or an even one: want %d to %d", bits, minRSABits, maxRSABits)
	}
	if exponent.BitLen() > 31 || exponent.Int64() < 3 || exponent.Bit(0) == 0 {
		return nil, errors.New("RSA exponent: want an odd one of 3 to 2^31-1")
	}
	return &rsa.PublicKey{N: modulus, E: int(exponent.Int64())}, nil
}

func (k *jwk) ecdsa(curve elliptic.Curve, size int) (*ecdsa.PublicKey, error) {
	x, errX := base64.RawURLEncoding.DecodeString(k.X)
	y, errY := base64.RawURLEncoding.DecodeString(k.Y)
	if err := errors.Join(errX, errY); err != nil {
		return nil, err
	}
	if len(x) != size || len(y) != size {
		return nil, fmt.Errorf("coordinates of %d and %d bytes, want %d", len(x), len(y), size)
	}
	return ecdsa.ParseUncompressedPublicKey(curve, slices.Concat([]byte{4}, x, y)) // refuses what isn't on the curve
}

func (k *jwk) ed25519() (ed25519.PublicKey, error) {
	x, err := base64.RawURLEncoding.DecodeString(k.X)
	if err != nil {
		return nil, err
	}
	if len(x) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("Ed25519 key of %d bytes, want %d", len(x), ed25519.PublicKeySize)
	}
	return ed25519.PublicKey(x), nil
}
