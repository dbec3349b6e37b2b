package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCertificatesAreForTheirHolders(t *testing.T) {
	t.Parallel()
	authority, err := Open(filepath.Join(t.TempDir(), "pki"))
	if err != nil {
		t.Fatal(err)
	}
	err = authority.Ensure(Certificate{
		Name: "kubelet", User: "system:node:node0", Groups: []string{"system:nodes"},
		Names: []string{"node0"}, Addresses: []net.IP{net.IPv4(172, 30, 0, 1)},
	})
	if err != nil {
		t.Fatal(err)
	}
	held, err := tls.LoadX509KeyPair(filepath.Join(authority.Dir, "kubelet.crt"), filepath.Join(authority.Dir, "kubelet.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.certificate)
	for _, name := range []string{"node0", "172.30.0.1"} {
		for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
			_, err := held.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, KeyUsages: []x509.ExtKeyUsage{usage}})
			if err != nil {
				t.Errorf("as %s, usage %v: %v", name, usage, err)
			}
		}
	}
	if user := held.Leaf.Subject.CommonName; user != "system:node:node0" {
		t.Errorf("user %q", user)
	}
	if diff := cmp.Diff([]string{"system:nodes"}, held.Leaf.Subject.Organization); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

// A repeated `up` must not make what running daemons hold invalid.
func TestNothingIsMadeTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	read := func() map[string]string {
		authority, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := authority.Ensure(Certificate{Name: "admin", User: "admin"}); err != nil {
			t.Fatal(err)
		}
		if err := authority.EnsureKeyPair("service-account"); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		for _, e := range entries {
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			files[e.Name()] = string(data)
		}
		return files
	}
	first := read()
	if len(first) != 6 {
		t.Errorf("%d files, want a pair for each of ca, admin and service-account", len(first))
	}
	if diff := cmp.Diff(first, read()); diff != "" {
		t.Errorf("the second time (-first +second):\n%s", diff)
	}
	// A key without its certificate is what an interrupted start leaves.
	if err := os.Remove(filepath.Join(dir, "admin.crt")); err != nil {
		t.Fatal(err)
	}
	read()
	if _, err := tls.LoadX509KeyPair(filepath.Join(dir, "admin.crt"), filepath.Join(dir, "admin.key")); err != nil {
		t.Errorf("after an interruption: %v", err)
	}
}
