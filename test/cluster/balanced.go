package cluster

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
)

// balanced sends each request to the next endpoint.
type balanced struct {
	*Balancer
	http.RoundTripper
}

// tries bounds the endpoints that a call tries to connect to.
const tries = 4

func (b balanced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body = io.NopCloser(r.Body) // its owner closes it: another try may need it
	}
	var last error
	for range tries {
		endpoint, ok := b.choose()
		if !ok {
			return nil, errors.New("no endpoint is ready")
		}
		r.URL.Host = endpoint
		response, err := b.RoundTripper.RoundTrip(r)
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			b.done(endpoint, nil)
			last = err
			continue
		}
		if err != nil {
			b.done(endpoint, unlessGone(r.Context(), err))
			return nil, err
		}
		response.Body = &counted{ReadCloser: response.Body, done: func(err error) { b.done(endpoint, unlessGone(r.Context(), err)) }}
		return response, nil
	}
	return nil, last
}

// unlessGone forgives what a caller ended that has gone.
func unlessGone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// counted tells when an answer was passed on, and whether to its end.
type counted struct {
	io.ReadCloser
	done func(error)
	once sync.Once
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		c.once.Do(func() { c.done(err) })
	}
	return n, err
}

func (c *counted) Close() error {
	c.once.Do(func() { c.done(nil) })
	return c.ReadCloser.Close()
}
