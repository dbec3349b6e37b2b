package client

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/token"
)

// keySuffix ends the name of each entry of the signing key Secret.
const keySuffix = ".pem"

// Signer signs requests with a ring of Ed25519 keys. It is immutable, so that
// a rotation is a new Signer (see Client.SetSigner).
type Signer struct {
	keys   map[string]ed25519.PrivateKey
	newest string
	now    func() time.Time
}

// NewSigner reads the entries of the signing key Secret: each is named
// <kid>.pem and holds one PKCS#8 PEM Ed25519 private key. The last kid in
// string order is the newest. An empty ring, an entry of another name or an
// unreadable key is an error, which never holds key material.
func NewSigner(entries map[string][]byte) (*Signer, error) {
	s := &Signer{keys: map[string]ed25519.PrivateKey{}, now: time.Now}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		kid, ok := strings.CutSuffix(name, keySuffix)
		if !ok || kid == "" {
			return nil, fmt.Errorf("signing key entry %q: want a name <kid>%s", name, keySuffix)
		}
		key, err := parseKey(entries[name])
		if err != nil {
			return nil, fmt.Errorf("signing key entry %q: %w", name, err)
		}
		s.keys[kid] = key
		s.newest = max(s.newest, kid)
	}
	if s.newest == "" {
		return nil, errors.New("signing keys: no entry <kid>.pem")
	}
	return s, nil
}

// GenerateKey returns a new private key in the form that NewSigner reads.
func GenerateKey() ([]byte, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate signing key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode signing key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// NewestKeyID is the kid that new pods are told (status.keyID).
func (s *Signer) NewestKeyID() string { return s.newest }

// HasKey tells whether the ring holds the private key kid.
func (s *Signer) HasKey(kid string) bool { _, ok := s.keys[kid]; return ok }

// PublicKeys returns the public keys as a JWK Set, for BERTH_PUBLIC_KEYS. The
// same ring gives the same string.
func (s *Signer) PublicKeys() (string, error) {
	public := make(map[string]ed25519.PublicKey, len(s.keys))
	for kid, key := range s.keys {
		public[kid] = key.Public().(ed25519.PublicKey)
	}
	set, err := token.MarshalKeys(public)
	return string(set), err
}

func (s *Signer) sign(pod Pod, method, path string) (string, error) {
	kid := pod.KeyID
	if kid == "" {
		kid = s.newest
	}
	key, ok := s.keys[kid]
	if !ok {
		return "", fmt.Errorf("%w %q, which pod %s was born with: add it to the signing key Secret, or replace the pod", ErrNoKey, kid, pod.UID)
	}
	return token.Sign(token.NewClaims(pod.audience(), method, path, s.now()), kid, key)
}

func parseKey(data []byte) (ed25519.PrivateKey, error) {
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errors.New("not a PEM block PRIVATE KEY (PKCS#8)")
	}
	if strings.TrimSpace(string(rest)) != "" {
		return nil, errors.New("more than one PEM block")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("not a PKCS#8 private key")
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("a %T, want Ed25519", parsed)
	}
	return key, nil
}
