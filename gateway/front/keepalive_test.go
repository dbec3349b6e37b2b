package front

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/gateway/splice"
)

// pipes is a listener whose connections a test makes.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

// Close is called once, by the server.
func (p pipes) Close() error {
	close(p)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// A client that takes a little at a time holds a large answer no longer than one
// that takes nothing.
func TestSlowReaderIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keep := KeepAlive{Flush: time.Hour, Interval: time.Hour, WriteTimeout: 5 * time.Minute}
		ended := make(chan error, 1)
		server := &http.Server{Handler: keep.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			large := splice.Text(r.Context(), make([]byte, 8<<20))
			_, err := io.WriteString(w, large)
			ended <- err
		}))}
		listener := make(pipes, 1)
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		defer func() {
			server.Close() // the listener's error, which is none
			if err := <-served; !errors.Is(err, http.ErrServerClosed) {
				t.Errorf("the server ended with %v", err)
			}
		}()

		client, conn := net.Pipe()
		defer client.Close()
		listener <- conn
		if _, err := io.WriteString(client, "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		little := make([]byte, 64<<10) // of 48 MiB
		for {
			select {
			case err := <-ended:
				if took := time.Since(start); err == nil || took != keep.WriteTimeout {
					t.Errorf("error %v after %s, want one after %s", err, took, keep.WriteTimeout)
				}
				return
			case <-time.After(time.Second):
				if _, err := io.ReadFull(client, little); err != nil {
					t.Logf("client: %v", err)
				}
			}
		}
	})
}

// Trap: an error that has an HTTP status of its own corrupts a stream that has
// begun. It must come as an event, whoever began the stream.
func TestErrorAfterAnEventIsAnEvent(t *testing.T) {
	t.Parallel()
	keep := KeepAlive{Flush: time.Hour, Interval: time.Hour, WriteTimeout: time.Minute}
	answer := httptest.NewRecorder()
	keep.wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, s := range []string{"event: message\ndata: {}\n\n", "event: message\ndata: []\n\n"} {
			if _, err := io.WriteString(w, s); err != nil {
				t.Error(err)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		if _, err := io.WriteString(w, "{\"error\":\n1}"); err != nil {
			t.Error(err)
		}
	})).ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/mcp", nil))
	want := "event: message\ndata: {}\n\nevent: message\ndata: []\n\nevent: message\ndata: {\"error\": 1}\n\n"
	if got := answer.Body.String(); got != want || answer.Code != http.StatusOK {
		t.Errorf("status %d, body %q, want %q", answer.Code, got, want)
	}
}

// An answer that never was a stream keeps its status and its body.
func TestErrorInPlaceOfAStreamIsPlain(t *testing.T) {
	t.Parallel()
	keep := KeepAlive{Flush: time.Hour, Interval: time.Hour, WriteTimeout: time.Minute}
	answer := httptest.NewRecorder()
	keep.wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		if _, err := io.WriteString(w, "{}"); err != nil {
			t.Error(err)
		}
	})).ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/mcp", nil))
	if got := answer.Body.String(); got != "{}" || answer.Code != http.StatusBadRequest || answer.Header().Get("Content-Type") != "application/json" {
		t.Errorf("status %d, headers %v, body %q; want the handler's", answer.Code, answer.Header(), got)
	}
}
