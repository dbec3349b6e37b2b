package artifactstore

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// pipes are a network within a synctest bubble: time passes there only once
// nothing moves any more, however slow the machine is.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, conn := net.Pipe()
	select {
	case p.conns <- conn:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Accept implements net.Listener.
func (p pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p pipes) Close() error {
	close(p.closed)
	return nil
}

// Addr implements net.Listener.
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

// inBubble runs a test with a store as newFaulty makes one, but with the limits
// that it really has, and a clock that leaps over what is waited for.
func inBubble(t *testing.T, handle http.HandlerFunc, test func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := Config{Name: "archive", Endpoint: "http://s3.test", Insecure: true, Bucket: "bucket"}
		keyFiles(t, &c, "AKIATEST", "secret-of-the-test")
		b := newBenchOn(t, c, nil)
		network := pipes{make(chan net.Conn), make(chan struct{})}
		transport, err := newTransport("")
		if err != nil {
			t.Fatal(err)
		}
		transport.Proxy, transport.DialContext = nil, network.dial
		core, err := minio.NewCore("s3.test", &minio.Options{
			Creds: credentials.New(files{c.AccessKeyFile, c.SecretKeyFile, ""}), Region: b.config.Region, Transport: transport, MaxRetries: attempts,
		})
		if err != nil {
			t.Fatal(err)
		}
		b.core = *core
		// A server doesn't see that who sends a body has gone, until it has read it.
		ended := make(chan struct{})
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handle(w, r.WithContext(context.WithValue(r.Context(), endedKey{}, ended)))
		})}
		served := make(chan error)
		go func() { served <- s.Serve(network) }()
		defer func() {
			close(ended)
			_ = s.Close() // closes connections, too
			if err := <-served; !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
			transport.CloseIdleConnections()
			<-time.After(time.Minute) // for which handlers and closed connections linger at most
		}()
		test(t, b)
	})
}

type endedKey struct{}

// hang does nothing until the test ends.
func hang(r *http.Request) { <-r.Context().Value(endedKey{}).(chan struct{}) }
