package artifactstore

import (
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"
)

// What failed on the way to a store is logged without its address.
func TestALoggedFailureHasNoAddress(t *testing.T) {
	t.Parallel()
	at := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 9000}
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: at, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"refused":         {refused, "dial: connect: connection refused"},
		"through a proxy": {&net.OpError{Op: "proxyconnect", Net: "tcp", Err: refused}, "dial: connect: connection refused"},
		"reset": {&net.OpError{Op: "read", Net: "tcp", Source: at, Addr: at, Err: os.NewSyscallError("read", syscall.ECONNRESET)},
			"read: read: connection reset by peer"},
		"no such name": {&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "s3.internal", Server: "192.0.2.1:53"}},
			"look up the endpoint's name: no such host"},
		"another certificate": {x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"a.internal"}}, Host: "s3.internal"},
			"the certificate is not of the endpoint's name"},
		"anything else": {errors.New("EOF"), "EOF"},
	} {
		wrapped := errors.Join(errStalled, &url.Error{Op: "Put", URL: "https://s3.internal/bucket/key", Err: tc.err})
		if got := strip(wrapped); got.Error() != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := strip(refused); got.Error() != "dial: connect: connection refused" {
		t.Errorf("without a URL: %q", got)
	}
}
