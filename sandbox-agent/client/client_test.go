package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

func newSigner(t *testing.T, kids ...string) *Signer {
	t.Helper()
	entries := map[string][]byte{}
	for _, kid := range kids {
		key, err := GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		entries[kid+".pem"] = key
	}
	s, err := NewSigner(entries)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// lying starts an agent that answers what handle does.
func lying(t *testing.T, options Options, handle http.HandlerFunc) (*Client, Pod) {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	address := netip.MustParseAddrPort(server.Listener.Addr().String())
	options.Port, options.AllowLoopback = int(address.Port()), true
	c := New(newSigner(t, "key-0001"), options)
	t.Cleanup(c.Close)
	return c, Pod{Namespace: "ns", UID: "uid", IP: address.Addr()}
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the client may have had enough
	}
}

func TestSigner(t *testing.T) {
	t.Parallel()
	s := newSigner(t, "key-0002", "key-0010", "key-0001")
	if s.NewestKeyID() != "key-0010" || !s.HasKey("key-0001") || s.HasKey("key-0003") {
		t.Errorf("newest is %s", s.NewestKeyID())
	}
	one, err1 := s.PublicKeys()
	two, err2 := s.PublicKeys()
	if one != two || strings.Count(one, `"kid"`) != 3 || errors.Join(err1, err2) != nil {
		t.Errorf("want a stable JWK Set of three, got %s and %s", one, two)
	}
	good, err := GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, entries := range map[string]map[string][]byte{
		"no entry":       {},
		"empty key":      {"key-0001.pem": nil},
		"other name":     {"key-0001": good},
		"no kid":         {".pem": good},
		"not PEM":        {"key-0001.pem": []byte("secret material")},
		"two blocks":     {"key-0001.pem": append(good, good...)},
		"bad among good": {"key-0001.pem": good, "key-0002.pem": []byte("x")},
	} {
		if _, err := NewSigner(entries); err == nil || strings.Contains(err.Error(), "secret material") {
			t.Errorf("%s: want an error without key material, got %v", name, err)
		}
	}
}

func TestAddressesThatNoPodHas(t *testing.T) {
	t.Parallel()
	c := New(newSigner(t, "key-0001"), Options{})
	for _, s := range []string{"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "169.254.169.254", "fe80::1", "fe80::1%eth0", "224.0.0.1", "ff02::1", "255.255.255.255", "::ffff:169.254.169.254"} {
		pod := Pod{Namespace: "ns", UID: "uid", IP: netip.MustParseAddr(s)}
		if _, err := c.Exec(t.Context(), pod, ExecRequest{Command: "true"}, 0); !errors.Is(err, ErrNotSent) {
			t.Errorf("%s: want ErrNotSent, got %v", s, err)
		}
		if _, err := c.Health(t.Context(), pod); !errors.Is(err, ErrNotSent) {
			t.Errorf("%s: health: want ErrNotSent, got %v", s, err)
		}
	}
	if _, err := c.Exec(t.Context(), Pod{}, ExecRequest{}, 0); !errors.Is(err, ErrNotSent) {
		t.Errorf("no address: %v", err)
	}
	for _, s := range []string{"10.0.0.1", "fd00::1", "192.168.1.1"} {
		if err := checkAddress(netip.MustParseAddr(s), false); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// With sockets, agents are reached by these alone, each over connections of its
// own, whatever address a pod is said to have.
func TestAgentsBehindSockets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(uid string) string { return filepath.Join(dir, uid) }
	for _, uid := range []string{"pod-1", "pod-2"} {
		l, err := net.Listen("unix", path(uid))
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewUnstartedServer(answer(http.StatusOK, `{"stdout":"`+uid+`"}`))
		server.Listener.Close()
		server.Listener = l
		server.Start()
		t.Cleanup(server.Close)
	}
	c := New(newSigner(t, "key-0001"), Options{Socket: path})
	t.Cleanup(c.Close)
	for _, uid := range []string{"pod-1", "pod-2", "pod-1"} {
		r, err := c.Exec(t.Context(), Pod{Namespace: "ns", UID: uid, IP: netip.MustParseAddr("192.0.2.1")}, ExecRequest{Command: "true"}, 0)
		if err != nil || r.Stdout != uid {
			t.Errorf("%s: got %+v, %v", uid, r, err)
		}
	}
	for _, uid := range []string{"", "pod-3", "../pod-1", "pod-1:80", "pod-1/", "Pod-1", "pod.1", "[::1]"} {
		if _, err := c.Exec(t.Context(), Pod{Namespace: "ns", UID: uid}, ExecRequest{Command: "true"}, 0); !errors.Is(err, ErrNotSent) {
			t.Errorf("pod %q: error %v, want one that is ErrNotSent", uid, err)
		}
	}
}

// TestNotSent tells a request that never left from one that may have run.
func TestNotSent(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := netip.MustParseAddrPort(listener.Addr().String())
	pod := Pod{Namespace: "ns", UID: "uid", IP: address.Addr()}
	c := New(newSigner(t, "key-0001"), Options{Port: int(address.Port()), AllowLoopback: true})
	go func() { // accepts, reads and hangs up
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1))
			conn.Close()
		}
	}()
	if _, err := c.Exec(t.Context(), pod, ExecRequest{Command: "true"}, 0); err == nil || errors.Is(err, ErrNotSent) {
		t.Errorf("a request that was read: got %v", err)
	}
	listener.Close()
	if _, err := c.Exec(t.Context(), pod, ExecRequest{Command: "true"}, 0); !errors.Is(err, ErrNotSent) {
		t.Errorf("nobody listens: want ErrNotSent, got %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Exec(gone, pod, ExecRequest{Command: "true"}, 0); !errors.Is(err, ErrNotSent) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: got %v", err)
	}
	pod.KeyID = "key-0007"
	if _, err := c.Exec(t.Context(), pod, ExecRequest{Command: "true"}, 0); !errors.Is(err, ErrNotSent) || !errors.Is(err, ErrNoKey) || !strings.Contains(err.Error(), "key-0007") {
		t.Errorf("a key that the ring lacks: got %v", err)
	}
}

// TestNeverRepeated: the transport sends a command once, whatever becomes of
// the connection.
func TestNeverRepeated(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	c, pod := lying(t, Options{}, func(http.ResponseWriter, *http.Request) {
		calls.Add(1)
		panic(http.ErrAbortHandler)
	})
	if _, err := c.Exec(t.Context(), pod, ExecRequest{Command: "true"}, 0); err == nil || errors.Is(err, ErrNotSent) {
		t.Errorf("got %v", err)
	}
	if calls.Load() != 1 {
		t.Errorf("sent %d times", calls.Load())
	}
}

func ExampleNewSigner() {
	key, err := GenerateKey()
	if err != nil {
		panic(err)
	}
	signer, err := NewSigner(map[string][]byte{"key-0001.pem": key})
	fmt.Println(signer.NewestKeyID(), err)
	// Output: key-0001 <nil>
}
