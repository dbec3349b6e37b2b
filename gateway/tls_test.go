package gateway_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// pair is a certificate for 127.0.0.1, self-signed, and its key, in PEM.
type pair struct{ certificate, key []byte }

func newPair(t testing.TB, serial int64) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

// files are where a gateway has its pair from.
type files struct{ certificate, key string }

func (f files) write(t testing.TB, p pair) {
	t.Helper()
	replace(t, f.key, p.key)
	replace(t, f.certificate, p.certificate)
}

func replace(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// newTLSStack is a gateway with TLS, and a client that trusts its certificate.
func newTLSStack(t testing.TB, api *fakeAPI, p pair) (*stack, files, *http.Client) {
	t.Helper()
	dir := t.TempDir()
	f := files{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
	f.write(t, p)
	s := newStack(t, api, func(o *gateway.Options) { o.TLSCert, o.TLSKey = f.certificate, f.key })
	s.url = strings.Replace(s.url, "http://", "https://", 1)
	s.log.await("Began to serve")
	return s, f, trusting(t, p, true)
}

func trusting(t testing.TB, p pair, http2 bool) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(p.certificate) {
		t.Fatal("no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: http2}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// All that streams does so over HTTP/2 and over HTTP/1.1 with TLS alike.
func TestTLSServesEverything(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		http2 bool
		proto string
	}{"HTTP/2": {true, "HTTP/2.0"}, "HTTP/1.1": {false, "HTTP/1.1"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := newAPI(t)
			fa := newAgent(t, "pod")
			fa.session = &client.Session{}
			content := bytes.Repeat([]byte("0123456789abcde\n"), 512<<10)
			fa.artifacts[artifactID] = fakeArtifact{"f", "application/octet-stream", content}
			ended := make(chan struct{})
			fa.exec = func(w http.ResponseWriter, r *http.Request, req client.ExecRequest) {
				if req.Command == "hang" {
					hang(r)
					close(ended)
					return
				}
				agentJSON(w, client.ExecResult{Stdout: req.Command})
			}
			api.put(t, readyOn(newSandbox("s", "alice"), fa))
			p := newPair(t, 1)
			s, _, _ := newTLSStack(t, api, p)
			c := overTLS{s, trusting(t, p, tc.http2), tc.proto}
			for _, era := range eras {
				if status, body := c.ask(t, "POST", "/mcp", strings.NewReader(bashBody(era, "echo x")), toolHeaders(era, "s")); status != 200 || !bytes.Contains(body, []byte("echo x")) {
					t.Errorf("bash (%s): %d %s", era, status, body)
				}
			}
			read := `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"` + artifactOf + "s." + artifactID + `"}}`
			if status, body := c.ask(t, "POST", "/mcp", strings.NewReader(read), func(r *http.Request) { mcpHeaders(r, eras[0]) }); status != 200 || len(body) < len(content)*4/3 {
				t.Errorf("resources/read: %d, %d bytes", status, len(body))
			}
			if status, body := c.ask(t, "GET", "/artifacts/sandboxes.s."+artifactID, nil, nil); status != 200 || !bytes.Equal(body, content) {
				t.Errorf("artifact: %d, %d bytes; want all", status, len(body))
			}
			if status, body := c.ask(t, "POST", "/sessions/s/files?name=f", bytes.NewReader(content), nil); status != 201 {
				t.Errorf("upload: %d %s", status, body)
			}
			c.giveUp(t, ended)
		})
	}
}

// overTLS is a client of a gateway, by one version of HTTP.
type overTLS struct {
	*stack
	client *http.Client
	proto  string
}

func (c overTLS) send(t *testing.T, method, path string, body io.Reader, change func(*http.Request)) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, c.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer alice")
	if change != nil {
		change(r)
	}
	resp, err := c.client.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	if resp.Proto != c.proto {
		t.Errorf("%s %s over %s, want %s", method, path, resp.Proto, c.proto)
	}
	return resp
}

func (c overTLS) ask(t *testing.T, method, path string, body io.Reader, change func(*http.Request)) (status int, answer []byte) {
	t.Helper()
	resp := c.send(t, method, path, body, change)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, answer
}

// giveUp reads the first comment of a silent call, and then no more: its command ends.
func (c overTLS) giveUp(t *testing.T, ended <-chan struct{}) {
	t.Helper()
	resp := c.send(t, "POST", "/mcp", strings.NewReader(bashBody(eras[1], "hang")), toolHeaders(eras[1], "s"))
	first := make([]byte, 1)
	if _, err := resp.Body.Read(first); err != nil || first[0] != ':' {
		t.Errorf("while the command runs: %q, %v; want a comment", first, err)
	}
	select {
	case <-ended:
		t.Error("the command ended while its client read")
	default:
	}
	resp.Body.Close()
	<-ended
}

// The SDK's client, over HTTP/2.
func TestTLSWithTheSDKsClient(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	api.put(t, readyOn(newSandbox("s", "alice"), newAgent(t, "pod")))
	s, _, c := newTLSStack(t, api, newPair(t, 1))
	forEachEra(t, func(t *testing.T, era string) {
		h := http.Header{"Authorization": {"Bearer alice"}, "X-Session-Id": {"s"}}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{
			Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: headers{h, c.Transport}}, DisableStandaloneSSE: true, MaxRetries: -1,
		}, &mcp.ClientSessionOptions{ProtocolVersion: era})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		if r := bash(t, session, "true"); r.IsError {
			t.Error(text(t, r))
		}
	})
}

// serial is that of the certificate that a new connection gets.
func (s *stack) serial(t testing.TB) int64 {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), &tls.Config{InsecureSkipVerify: true}) // which one it is is the question
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// A new pair is used without a restart; one that is half written is not.
func TestCertificateReload(t *testing.T) {
	t.Parallel()
	first, second := newPair(t, 1), newPair(t, 2)
	s, f, _ := newTLSStack(t, newAPI(t), first)
	if got := s.serial(t); got != 1 {
		t.Errorf("serial %d, want the first pair's", got)
	}
	replace(t, f.key, second.key)
	s.log.await("Certificate could not be read")
	if got := s.serial(t); got != 1 {
		t.Errorf("serial %d with half a pair, want the first's", got)
	}
	replace(t, f.certificate, second.certificate)
	s.log.await("Certificate was read again")
	if got := s.serial(t); got != 2 {
		t.Errorf("serial %d, want the second pair's", got)
	}
}

// Clients of old protocols are refused.
func TestTLSVersions(t *testing.T) {
	t.Parallel()
	s, _, _ := newTLSStack(t, newAPI(t), newPair(t, 1))
	for version, taken := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version})
		if (err == nil) != taken {
			t.Errorf("%s: error %v, want taken %v", tls.VersionName(version), err, taken)
		}
		if err == nil {
			conn.Close()
		}
	}
}

// A pair that can't be used is told before anything is served.
func TestCertificatesThatAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := newPair(t, 1), newPair(t, 2)
	f := files{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
	for name, tc := range map[string]struct {
		p    pair
		want string
	}{
		"another's key":  {pair{one.certificate, two.key}, "private key does not match"},
		"no certificate": {pair{nil, one.key}, "failed to find any PEM data in certificate"},
		"no key":         {pair{one.certificate, []byte("x")}, "failed to find any PEM data in key"},
	} {
		f.write(t, tc.p)
		o := defaults()
		o.TLSCert, o.TLSKey = f.certificate, f.key
		if _, err := gateway.New(o, newAPI(t), agentOptions(), "test", discard()); err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "--tls-cert="+f.certificate) {
			t.Errorf("%s: error %v, want it to say %q and where", name, err, tc.want)
		}
	}
	o := defaults()
	o.TLSCert, o.TLSKey = filepath.Join(dir, "absent"), f.key
	if _, err := gateway.New(o, newAPI(t), agentOptions(), "test", discard()); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("an absent file: error %v", err)
	}
}
