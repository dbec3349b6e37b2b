package front

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// R21: a panic is one failed request. It breaks its connection, is audited, and its
// place is another's then.
func TestPanicOfAnArtifactsRead(t *testing.T) {
	t.Parallel()
	var panics atomic.Bool
	f := &file{data: []byte("0123456789"), body: func(_ context.Context, part []byte) io.ReadCloser {
		if panics.Load() {
			panic("a bug")
		}
		return io.NopCloser(bytes.NewReader(part))
	}}
	url, log := serve(t, f, func(o *Options) { o.Streams.Max, o.Streams.Each = 1, 1 })
	panics.Store(true)
	if resp, err := http.DefaultClient.Do(request(t, http.MethodGet, url, nil)); err == nil {
		resp.Body.Close()
		t.Errorf("status %d of a request that panicked, want none", resp.StatusCode)
	}
	log.next(t, `"operation":"get_artifact"`, `"code":"panic"`)
	panics.Store(false)
	if resp, body, err := do(t, request(t, http.MethodGet, url, nil)); err != nil || resp.StatusCode != http.StatusOK || body != "0123456789" {
		t.Errorf("the next one: %d, %q, %v", resp.StatusCode, body, err)
	}
	log.next(t, `"code":"ok"`)
}

// cut is a body that yields some bytes and then fails, or waits for its context's end.
type cut struct {
	ctx    context.Context
	data   io.Reader
	err    error
	closed chan struct{}
}

func (c *cut) Read(p []byte) (int, error) {
	if n, err := c.data.Read(p); err == nil {
		return n, nil
	}
	if c.err == nil {
		<-c.ctx.Done()
		return 0, c.ctx.Err()
	}
	return 0, c.err
}

func (c *cut) Close() error { close(c.closed); return nil }

// R34: what can't be sent whole is cut off, and never looks like all there is.
func TestArtifactIsCutOff(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err    error
		change func(o *Options, end context.Context)
		code   string
	}{
		"source fails":          {errors.New("the connection to the sandbox was lost"), nil, "failed"},
		"source ends early":     {io.EOF, nil, "failed"},
		"takes longer than any": {nil, func(o *Options, _ context.Context) { o.Streams.Longest = 50 * time.Millisecond }, "failed"},
		"outlasts the shutdown": {nil, func(o *Options, end context.Context) { o.Ending = end }, "failed"},
		"its caller has gone":   {nil, nil, "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end, stop := context.WithCancel(context.Background())
			defer stop()
			closed := make(chan struct{})
			f := &file{data: make([]byte, 1<<20), etag: `"e"`, body: func(ctx context.Context, part []byte) io.ReadCloser {
				return &cut{ctx, bytes.NewReader(part[:100<<10]), tc.err, closed}
			}}
			url, log := serve(t, f, func(o *Options) {
				if tc.change != nil {
					tc.change(o, end)
				}
			})
			ctx, gone := context.WithCancel(t.Context())
			defer gone()
			resp, err := http.DefaultClient.Do(request(t, "GET", url, nil).WithContext(ctx))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if _, err := io.ReadFull(resp.Body, make([]byte, 64<<10)); err != nil {
				t.Fatal(err)
			}
			stop()
			if tc.code == "cancelled" {
				gone()
			}
			n, err := io.Copy(io.Discard, resp.Body)
			if err == nil {
				t.Errorf("%d more bytes and the end, want an error", n)
			}
			<-closed
			log.next(t, `"code":"`+tc.code+`"`, `"namespace":"n"`, `"session":"s"`, `"operation":"get_artifact"`)
		})
	}
}

// An artifact that becomes another between two parts is not mixed from both.
func TestArtifactThatChangesIsCutOff(t *testing.T) {
	t.Parallel()
	f := &file{data: []byte("0123456789"), etag: `"e"`}
	f.body = func(_ context.Context, part []byte) io.ReadCloser {
		f.etag = `"other"`
		return io.NopCloser(bytes.NewReader(part))
	}
	url, log := serve(t, f, nil)
	resp, err := http.DefaultClient.Do(request(t, "GET", url, map[string]string{"Range": "bytes=-3"}))
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	if err == nil {
		t.Error("a mixed artifact was sent whole")
	}
	log.next(t, `"outBytes":0`, `"code":"failed"`)
}

// A caller that reads nothing is dropped once its time for a piece is over; what it
// held is free again.
func TestArtifactOfACallerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan struct{})
		f := &file{data: make([]byte, 1<<20), etag: `"e"`, body: func(ctx context.Context, part []byte) io.ReadCloser {
			return &cut{ctx, bytes.NewReader(part), io.EOF, closed}
		}}
		front, log := newFront(t, f, func(o *Options) { o.Streams.Stall = 20 * time.Second })
		caller, conn := net.Pipe() // it takes what is read, and no more
		server := &http.Server{Handler: front}
		listener := &oneConn{conn: conn, done: make(chan struct{})}
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		if _, err := io.WriteString(caller, "GET /artifacts/"+token+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		<-closed
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("it was dropped after %s, want 20 s", took)
		}
		log.next(t, `"code":"cancelled"`)
		if n, err := io.Copy(io.Discard, caller); err != nil || n >= int64(len(f.data)) {
			t.Errorf("%d bytes, error %v; want a cut", n, err)
		}
		server.Close() // the listener's error, which is none
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the server ended with %v", err)
		}
	})
}

// oneConn is a listener of one connection.
type oneConn struct {
	conn net.Conn
	done chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if conn := l.conn; conn != nil {
		l.conn = nil
		return conn, nil
	}
	<-l.done
	return nil, net.ErrClosed
}

// Close is called once, by the server.
func (l *oneConn) Close() error {
	close(l.done)
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// The number of artifacts on their way is bounded: one more is refused at once.
func TestArtifactsAtATime(t *testing.T) {
	t.Parallel()
	begun, closed := make(chan context.Context, 3), make(chan struct{}, 3)
	f := &file{data: make([]byte, 10), etag: `"e"`, body: func(ctx context.Context, _ []byte) io.ReadCloser {
		begun <- ctx
		return &held{cut{ctx: ctx, data: strings.NewReader("")}, closed}
	}}
	url, log := serve(t, f, nil)
	ctx, gone := context.WithCancel(t.Context())
	defer gone()
	for range 2 {
		r := request(t, "GET", url, nil).WithContext(ctx)
		go func() {
			if resp, err := http.DefaultClient.Do(r); err == nil {
				resp.Body.Close()
			}
		}()
		<-begun
	}
	resp, body, err := do(t, request(t, "GET", url, nil))
	if err != nil || resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || !strings.Contains(body, `"busy"`) {
		t.Errorf("the third: %d %s, %v", resp.StatusCode, body, err)
	}
	log.next(t, `"code":"failed"`)
	gone()
	<-closed
	<-closed
	log.next(t, `"code":"cancelled"`)
	log.next(t, `"code":"cancelled"`)
	f.mu.Lock()
	f.body = nil
	f.mu.Unlock()
	if resp, body, err := do(t, request(t, "GET", url, nil)); err != nil || resp.StatusCode != 200 || len(body) != 10 {
		t.Errorf("the next: %d %s, %v", resp.StatusCode, body, err)
	}
}

// held tells of its end on a channel that several share.
type held struct {
	cut
	ended chan struct{}
}

func (h *held) Close() error { h.ended <- struct{}{}; return nil }
