package process

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// Probe is the question whether something answers: a URL (http or https) with
// status 200, or a Unix socket, "unix:///path", that accepts a connection.
type Probe string

const (
	probeTimeout = 2 * time.Second
	// probePause is between two questions: nothing tells when a port opens.
	probePause = 50 * time.Millisecond
)

// Dial makes a connection, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Prober asks probes. It doesn't check certificates: daemons make their own for
// their health endpoints, and the answer is one word.
type Prober struct {
	dial   Dial
	client *http.Client
}

// NewProber makes a prober that connects by dial.
func NewProber(dial Dial) Prober {
	return Prober{dial: dial, client: &http.Client{
		Timeout: probeTimeout,
		Transport: &http.Transport{
			DialContext:       dial,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
			DisableKeepAlives: true,
		},
	}}
}

// Wait asks until the answer is yes. It fails when the context ends, with the
// last reason.
func (p Prober) Wait(ctx context.Context, probe Probe) error {
	return Poll(ctx, string(probe), func() error { return p.Ask(ctx, probe) })
}

// Poll calls f until it returns nil. It fails when the context ends, with f's
// last error; what names that which is waited for.
func Poll(ctx context.Context, what string, f func() error) error {
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w (%w)", what, context.Cause(ctx), err)
		case <-time.After(probePause):
		}
	}
}

// Ask asks once.
func (p Prober) Ask(ctx context.Context, probe Probe) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if path, ok := strings.CutPrefix(string(probe), "unix://"); ok {
		conn, err := p.dial(ctx, "unix", path)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, string(probe), nil)
	if err != nil {
		return err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", response.Status)
	}
	return nil
}
