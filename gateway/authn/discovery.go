package authn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"
)

// maxDocument bounds what an issuer answers, in bytes.
const maxDocument = 1 << 20

// maxIssuer is the longest issuer: it is a part of each owner's name.
const maxIssuer = 512

// CheckIssuer tells what is wrong with the URL of an issuer, if anything is.
func CheckIssuer(issuer string) error {
	u, err := url.Parse(issuer)
	switch {
	case err != nil:
		return err
	case len(issuer) > maxIssuer:
		return fmt.Errorf("%d bytes; at most %d", len(issuer), maxIssuer)
	case u.Host == "" || u.User != nil || strings.ContainsAny(issuer, "?#"):
		return errors.New("want https://HOST[/PATH], as the issuer's tokens have it")
	}
	return secure(u)
}

// secure tells whether what comes from u can be believed.
func secure(u *url.URL) error {
	if u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname()) {
		return nil
	}
	return fmt.Errorf("%s is not https, nor http on a loopback address", u.Redacted())
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// discovery gets an issuer's keys by OpenID Connect Discovery 1.0 §4.
type discovery struct {
	issuer string
	client *http.Client
}

// newDiscovery trusts the certificates of caFile, or the system's if it is empty.
func newDiscovery(issuer, caFile string) (*discovery, error) {
	if err := CheckIssuer(issuer); err != nil {
		return nil, fmt.Errorf("OIDC issuer: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("read certificates of the OIDC issuer: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate in PEM", caFile)
		}
	}
	return &discovery{issuer: issuer, client: &http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSClientConfig:        config,
			ForceAttemptHTTP2:      true,
			MaxResponseHeaderBytes: 64 << 10,
			IdleConnTimeout:        30 * time.Second,
		},
		CheckRedirect: sameHost,
	}}, nil
}

// sameHost follows redirects within a host only: another one isn't the issuer.
func sameHost(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	if r.URL.Scheme != first.Scheme || r.URL.Host != first.Host || len(via) > 3 {
		return errors.New("it redirects elsewhere, or for ever")
	}
	return nil
}

// keys asks the issuer where its keys are, and gets them.
func (d *discovery) keys(ctx context.Context) ([]publicKey, error) {
	data, err := d.get(ctx, strings.TrimSuffix(d.issuer, "/")+"/.well-known/openid-configuration")
	if err != nil {
		return nil, err
	}
	var document struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return nil, fmt.Errorf("decode the issuer's configuration: %w", err)
	}
	if document.Issuer != d.issuer {
		return nil, fmt.Errorf("the issuer calls itself %q; set --oidc-issuer to exactly what its tokens have", shorten(document.Issuer))
	}
	u, err := url.Parse(document.Keys)
	if err != nil {
		return nil, fmt.Errorf("jwks_uri: %w", err)
	}
	if err := secure(u); err != nil {
		return nil, fmt.Errorf("jwks_uri: %w", err)
	}
	if data, err = d.get(ctx, document.Keys); err != nil {
		return nil, err
	}
	return parseKeys(data)
}

func (d *discovery) get(ctx context.Context, address string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	resp, err := d.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get %s: %s", address, resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", address, err)
	}
	if len(data) > maxDocument {
		return nil, fmt.Errorf("get %s: more than %d bytes", address, maxDocument)
	}
	return data, nil
}

// shorten keeps what others wrote from filling the log.
func shorten(s string) string {
	if len(s) > maxIssuer {
		return s[:maxIssuer] + "..."
	}
	return s
}
