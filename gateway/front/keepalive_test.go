package front

import (
	"errors"
	"io"
	"net"
	"net/http"
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
