// Package pki makes the keys and certificates of a cluster: one authority, which
// signs everything, and a key pair for service account tokens.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/berth-dev/berth/hack/cluster/process"
)

// Certificate is what is asked for: a certificate for both ends of TLS.
type Certificate struct {
	// Name is that of the files, <Name>.crt and <Name>.key.
	Name string
	// User and Groups are what Kubernetes takes the holder for.
	User   string
	Groups []string
	// Names and Addresses are what it may be reached by.
	Names     []string
	Addresses []net.IP
}

// lifetime is longer than any test cluster's.
const lifetime = 10 * 365 * 24 * time.Hour

// Authority signs certificates; its own is ca.crt in Dir.
type Authority struct {
	Dir string

	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Open reads the folder's authority, which it makes if there is none.
func Open(dir string) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	a := &Authority{Dir: dir}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "berth-cluster-ca"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if err := a.make("ca", template, nil); err != nil {
		return nil, err
	}
	pair, err := readPair(dir, "ca")
	if err != nil {
		return nil, err
	}
	a.certificate, a.key = pair.certificate, pair.key
	return a, nil
}

// Ensure makes the certificates that aren't there yet.
func (a *Authority) Ensure(list ...Certificate) error {
	for _, c := range list {
		template := &x509.Certificate{
			Subject:     pkix.Name{CommonName: c.User, Organization: c.Groups},
			DNSNames:    c.Names,
			IPAddresses: c.Addresses,
			KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		if err := a.make(c.Name, template, a); err != nil {
			return fmt.Errorf("certificate %s: %w", c.Name, err)
		}
	}
	return nil
}

// EnsureKeyPair makes <name>.key and <name>.pub, for signatures without a
// certificate.
func (a *Authority) EnsureKeyPair(name string) error {
	return a.once(name+".pub", func() ([]byte, error) {
		key, err := a.newKey(name)
		if err != nil {
			return nil, err
		}
		der, err := x509.MarshalPKIXPublicKey(key.Public())
		return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), err
	})
}

// make signs a certificate with parent, or with itself if parent is nil.
func (a *Authority) make(name string, template *x509.Certificate, parent *Authority) error {
	return a.once(name+".crt", func() ([]byte, error) {
		key, err := a.newKey(name)
		if err != nil {
			return nil, err
		}
		serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
		if err != nil {
			return nil, err
		}
		template.SerialNumber = serial
		template.NotBefore = time.Now().Add(-time.Hour)
		template.NotAfter = time.Now().Add(lifetime)
		issuer, signer := template, crypto.Signer(key)
		if parent != nil {
			issuer, signer = parent.certificate, parent.key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), signer)
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
	})
}

// once writes the file unless it's there. It's written last, after its key: who
// is interrupted between the two makes both again.
func (a *Authority) once(file string, content func() ([]byte, error)) error {
	path := filepath.Join(a.Dir, file)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := content()
	if err != nil {
		return err
	}
	return process.WriteFile(path, data, 0o644)
}

func (a *Authority) newKey(name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	data := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	return key, process.WriteFile(filepath.Join(a.Dir, name+".key"), data, 0o600)
}

type pair struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func readPair(dir, name string) (pair, error) {
	var blocks [2]*pem.Block
	for i, ext := range []string{".crt", ".key"} {
		data, err := os.ReadFile(filepath.Join(dir, name+ext))
		if err != nil {
			return pair{}, err
		}
		if blocks[i], _ = pem.Decode(data); blocks[i] == nil {
			return pair{}, fmt.Errorf("%s%s in %s is not PEM: `cluster down` removes it", name, ext, dir)
		}
	}
	certificate, err := x509.ParseCertificate(blocks[0].Bytes)
	if err != nil {
		return pair{}, err
	}
	key, err := x509.ParseECPrivateKey(blocks[1].Bytes)
	return pair{certificate, key}, err
}
