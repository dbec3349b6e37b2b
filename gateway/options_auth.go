package gateway

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/front"
)

// Ways to authenticate callers.
const (
	AuthTokenReview = "tokenreview"
	AuthOIDC        = "oidc"
	AuthNone        = "none"
)

func (o *Options) bindAuthFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.Auth, "auth", AuthTokenReview, "how callers are authenticated: tokenreview, oidc, or tokenreview,oidc (by the token's issuer); or none, which is refused unless --listen is a loopback address")
	fs.StringVar(&o.Audience, "audience", "berth-gateway", "audience that tokens for TokenReview must be made for")
	fs.StringVar(&o.OIDC.Issuer, "oidc-issuer", "", "URL of the OpenID Connect issuer whose tokens are taken: https, or http on loopback")
	fs.StringVar(&o.OIDC.Audience, "oidc-audience", "", "audience that the issuer's tokens must be made for")
	fs.StringVar(&o.OIDC.CAFile, "oidc-ca-file", "", "file with the certificates that the issuer's must come from; the system's if not given")
	fs.StringVar(&o.OIDC.GroupsClaim, "oidc-groups-claim", "groups", "claim of the issuer's tokens with the caller's groups; none are read if empty")
	fs.StringVar(&o.PublicURL, "public-url", "", "the gateway's URL, scheme and host, as clients know it: OAuth clients find its issuer by it. Taken from the Host header if not given, where --allowed-hosts holds that")
}

func (o *Options) validateAuth() error {
	var errs []error
	switch o.Auth {
	case AuthNone:
		if !o.loopback() {
			errs = append(errs, fmt.Errorf("--auth=none with --listen=%s: without authentication the gateway listens on a loopback address only, such as 127.0.0.1:8080", o.Listen))
		}
	case AuthTokenReview, AuthOIDC, AuthTokenReview + "," + AuthOIDC, AuthOIDC + "," + AuthTokenReview:
	default:
		errs = append(errs, fmt.Errorf("--auth=%s: want %s, %s, both with a comma, or %s", o.Auth, AuthTokenReview, AuthOIDC, AuthNone))
	}
	if o.authenticates(AuthTokenReview) && o.Audience == "" {
		errs = append(errs, errors.New("--audience must not be empty: without one any token of the cluster would be taken"))
	}
	if o.authenticates(AuthOIDC) {
		if err := authn.CheckIssuer(o.OIDC.Issuer); err != nil {
			errs = append(errs, fmt.Errorf("--oidc-issuer=%s: %w", o.OIDC.Issuer, err))
		}
		if o.OIDC.Audience == "" {
			errs = append(errs, errors.New("--oidc-audience must be given: without one any token of the issuer would be taken"))
		}
	} else if o.OIDC.Issuer != "" {
		errs = append(errs, fmt.Errorf("--oidc-issuer without --auth=%s: nobody would take its tokens", AuthOIDC))
	}
	if o.PublicURL != "" {
		u, err := url.Parse(o.PublicURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Scheme+"://"+u.Host != o.PublicURL {
			errs = append(errs, fmt.Errorf("--public-url=%s: want https://HOST[:PORT] and nothing else", o.PublicURL))
		}
	}
	return errors.Join(errs...)
}

// authenticates tells whether way is one of Auth.
func (o *Options) authenticates(way string) bool {
	return slices.Contains(strings.Split(o.Auth, ","), way)
}

// resource is what OAuth clients are told.
func (o *Options) resource() front.Resource {
	r := front.Resource{URL: o.PublicURL, Scheme: "http", Open: o.Auth == AuthNone}
	if o.TLSCert != "" {
		r.Scheme = "https"
	}
	if o.authenticates(AuthOIDC) {
		r.Servers = []string{o.OIDC.Issuer}
	}
	return r
}
