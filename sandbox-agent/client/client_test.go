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
	"testing/synctest"
	"time"
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

// TestUnbelievableResults: what no honest agent answers is an error, and
// bounded.
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

func TestUnbelievableResults(t *testing.T) {
	t.Parallel()
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err != nil {
				return
			}
		}
	}
	for name, handle := range map[string]http.HandlerFunc{
		"not JSON":       answer(200, `<html>`),
		"exit code":      answer(200, `{"exit_code":256}`),
		"negative code":  answer(200, `{"exit_code":-1}`),
		"negative count": answer(200, `{"stdout_bytes":-1}`),
		"long notice":    answer(200, `{"notice":"`+strings.Repeat("x", 2000)+`"}`),
		"endless":        endless,
		"announced": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "99999999999")
			w.WriteHeader(200)
		},
		"other type": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://example.com/", http.StatusFound)
		},
		"redirect 307": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/v1/session", http.StatusTemporaryRedirect)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, pod := lying(t, Options{}, handle)
			_, err := c.Exec(t.Context(), pod, ExecRequest{Command: "true"}, 0)
			if !errors.Is(err, ErrBadAnswer) || errors.Is(err, ErrNotSent) {
				t.Errorf("want ErrBadAnswer, got %v", err)
			}
		})
	}
}

func TestRefusalsAreTyped(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		status int
		body   string
		want   error
	}{
		{401, `{"error":{"code":"unauthorized","message":"m"}}`, ErrUnauthorized},
		{401, `of a stranger`, ErrUnauthorized},
		{409, `{"error":{"code":"session_required","message":"m"}}`, ErrSessionRequired},
		{409, `{"error":{"code":"session_bound","message":"m"}}`, ErrSessionBound},
		{410, ``, ErrGone},
		{429, `{"error":{"code":"queue_full","message":"m"}}`, ErrQueueFull},
		{503, `{"error":{"code":"no_shell","message":"m"}}`, ErrNoShell},
	} {
		c, pod := lying(t, Options{}, answer(x.status, x.body))
		_, err := c.Exec(t.Context(), pod, ExecRequest{Command: "true"}, 0)
		var refusal *Error
		if !errors.Is(err, x.want) || !errors.As(err, &refusal) || errors.Is(err, ErrNotSent) {
			t.Errorf("%d %s: want %v, got %v", x.status, x.body, x.want, err)
		}
	}
	c, pod := lying(t, Options{}, answer(500, `{"error":{"code":"x","message":"a\u0000\u001b[31m\n`+strings.Repeat("y", 5000)+`"}}`))
	_, err := c.Exec(t.Context(), pod, ExecRequest{Command: "true"}, 0)
	if text := err.Error(); len(text) > 1200 || strings.ContainsAny(text, "\x00\x1b\n") {
		t.Errorf("want the agent's words bounded and clean, got %q", text)
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

// Room is made for large results alone, and before they are read.
func TestRoomIsMadeForLargeResults(t *testing.T) {
	t.Parallel()
	full := errors.New("no room")
	var asked atomic.Int64
	options := Options{Admit: func(_ context.Context, size int64) error { asked.Store(size); return full }}
	large := `{"stdout":"` + strings.Repeat("a", AdmitAbove) + `"}`
	c, pod := lying(t, options, answer(http.StatusOK, large))
	if _, err := c.Exec(t.Context(), pod, ExecRequest{Command: "x"}, 0); !errors.Is(err, full) || asked.Load() < AdmitAbove {
		t.Errorf("error %v, asked for %d bytes; want its error", err, asked.Load())
	}
	c, pod = lying(t, options, answer(http.StatusOK, `{"stdout":"a"}`))
	if _, err := c.Exec(t.Context(), pod, ExecRequest{Command: "x"}, 0); err != nil {
		t.Errorf("small result: %v", err)
	}
}

// A pod can't hold the room for its result by sending it for ever.
func TestDribbledResultIsGivenUp(t *testing.T) {
	t.Parallel()
	c, pod := lying(t, Options{Grace: 50 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "100000")
		_ = http.NewResponseController(w).Flush() // fails only when the client is gone
		<-r.Context().Done()
	})
	if _, err := c.Exec(t.Context(), pod, ExecRequest{Command: "x"}, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want DeadlineExceeded", err)
	}
}

// stuck is a connection whose write is under way until it is released.
type stuck struct {
	net.Conn
	release chan int
}

func (s stuck) Write([]byte) (int, error) { return <-s.release, nil }

// Bytes of a write that has not returned may have left.
func TestWriteUnderWayCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := countingConn{Conn: stuck{release: make(chan int)}}
		go func() { _, _ = c.Write(make([]byte, 10)) }()
		synctest.Wait()
		if n := c.written.Load(); n == 0 {
			t.Error("want a write under way to count, got 0")
		}
		c.Conn.(stuck).release <- 0
		synctest.Wait()
		if n := c.written.Load(); n != 0 {
			t.Errorf("want nothing counted of a write of nothing, got %d", n)
		}
	})
}

func TestExecDeadlineIsAbsolute(t *testing.T) {
	t.Parallel()
	c, pod := lying(t, Options{QueueWait: time.Millisecond, Grace: time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices the end
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	if _, err := c.Exec(t.Context(), pod, ExecRequest{Command: "true"}, time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("want the deadline to end it, got %v", err)
	}
}

func TestReadArtifactDoesNotBelieve(t *testing.T) {
	t.Parallel()
	const id = "0123456789abcdef0123456789abcdef"
	header := func(status int, pairs ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			h.Set("ETag", `"x"`)
			h.Set("Content-Type", "text/plain")
			h.Set("Content-Disposition", "attachment; filename=a.txt")
			h.Set("Content-Length", "5")
			for i := 0; i < len(pairs); i += 2 {
				h.Set(pairs[i], pairs[i+1])
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "12345")
		}
	}
	for name, x := range map[string]struct {
		span   Span
		handle http.HandlerFunc
		ok     bool
	}{
		"whole":              {Span{}, header(200), true},
		"part":               {Span{Offset: 2, Length: 5}, header(206, "Content-Range", "bytes 2-6/10"), true},
		"longer than budget": {Span{}, header(200, "Content-Length", "101"), false},
		"part ignored":       {Span{Offset: 2}, header(200), false},
		"another part":       {Span{Offset: 2}, header(206, "Content-Range", "bytes 3-7/10"), false},
		"more than asked":    {Span{Offset: 2, Length: 4}, header(206, "Content-Range", "bytes 2-6/10"), false},
		"less than asked":    {Span{Offset: 2, Length: 6}, header(206, "Content-Range", "bytes 2-6/10"), false},
		"less than all":      {Span{}, header(206, "Content-Range", "bytes 0-4/10"), false},
		"all that is left":   {Span{Offset: 5, Length: 9}, header(206, "Content-Range", "bytes 5-9/10"), true},
		"impossible part":    {Span{Offset: 2}, header(206, "Content-Range", "bytes 2-6/5"), false},
		"malformed part":     {Span{Offset: 2}, header(206, "Content-Range", "2-6"), false},
		"weak ETag":          {Span{}, header(200, "ETag", `W/"x"`), false},
		"no ETag":            {Span{}, header(200, "ETag", ""), false},
		"open ETag":          {Span{}, header(200, "ETag", `"x`), false},
		"space in an ETag":   {Span{}, header(200, "ETag", `"x y"`), false},
		"longest ETag":       {Span{}, header(200, "ETag", `"`+strings.Repeat("x", 126)+`"`), true},
		"longer ETag":        {Span{}, header(200, "ETag", `"`+strings.Repeat("x", 127)+`"`), false},
		"bad type":           {Span{}, header(200, "Content-Type", "<script>"), false},
		"path as a name":     {Span{}, header(200, "Content-Disposition", `attachment; filename="../a"`), false},
		"no name":            {Span{}, header(200, "Content-Disposition", "attachment"), false},
	} {
		c, pod := lying(t, Options{}, x.handle)
		r, err := c.ReadArtifact(t.Context(), pod, id, x.span, 100)
		if (err == nil) != x.ok {
			t.Errorf("%s: want accepted %v, got %v", name, x.ok, err)
		}
		if r != nil {
			if data, err := io.ReadAll(r.Body); err != nil || string(data) != "12345" {
				t.Errorf("%s: %q, %v", name, data, err)
			}
			if strings.Contains(r.Name, "/") {
				t.Errorf("%s: name %q", name, r.Name)
			}
			r.Body.Close()
		}
	}
	c, pod := lying(t, Options{}, header(200, "Content-Length", "0"))
	if _, err := c.ReadArtifact(t.Context(), pod, id, Span{Offset: 1}, 100); !errors.Is(err, ErrRange) {
		t.Errorf("a part of nothing: %v, want ErrRange", err)
	}
	c, pod = lying(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		header(200, "Content-Length", "9")(w, r) // and ends after 5
	})
	r, err := c.ReadArtifact(t.Context(), pod, id, Span{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if _, err := io.ReadAll(r.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("want an early end to be an error, got %v", err)
	}
	for _, bad := range []string{"", "x", strings.Repeat("A", 32), id + "/.."} {
		if _, err := c.ReadArtifact(t.Context(), pod, bad, Span{}, 100); !errors.Is(err, ErrNotFound) {
			t.Errorf("id %q: want ErrNotFound, got %v", bad, err)
		}
	}
}

func FuzzContentRange(f *testing.F) {
	f.Add("bytes 0-4/10", int64(5))
	f.Fuzz(func(t *testing.T, s string, length int64) {
		r := &Reading{Length: length}
		if r.parseRange(s) == nil && (r.Offset < 0 || r.Offset+r.Length > r.Size) {
			t.Errorf("%q: offset %d, length %d, size %d", s, r.Offset, r.Length, r.Size)
		}
	})
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
