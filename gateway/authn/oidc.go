package authn

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/berth-dev/berth/gateway/reviewcache"
)

// leeway is how far an issuer's clock may be ahead of ours. A token's end is never
// put off by it.
const leeway = 30 * time.Second

// maxSubject is the longest subject, in bytes (OpenID Connect Core 1.0 §2).
const maxSubject = 255

// systemPrefix begins the names that Kubernetes keeps for itself.
const systemPrefix = "system:"

// OIDCOptions say whose tokens are taken.
type OIDCOptions struct {
	// Issuer is the iss of tokens, and where its keys are found.
	Issuer string
	// Audience is one that every token must have been made for.
	Audience string
	// CAFile has the certificates that the issuer's must come from; the system's
	// if empty.
	CAFile string
	// GroupsClaim names the claim with a caller's groups; none are read if empty.
	GroupsClaim string
	Log         *slog.Logger
}

// OIDC authenticates the tokens (JWT) of one OpenID Connect issuer, by the keys
// that it publishes.
type OIDC struct {
	options OIDCOptions
	now     func() time.Time
	keys    *keySet
	parser  *jwt.Parser
	cache   *reviewcache.Cache[[sha256.Size]byte, *Caller]
}

// NewOIDC returns an authenticator that asks the issuer for its keys when the
// first token needs one.
func NewOIDC(options OIDCOptions, now func() time.Time) (*OIDC, error) {
	if options.Audience == "" {
		return nil, errors.New("OIDC needs an audience: without one any token of the issuer would be taken")
	}
	d, err := newDiscovery(options.Issuer, options.CAFile)
	if err != nil {
		return nil, err
	}
	return &OIDC{
		options: options,
		now:     now,
		keys:    &keySet{fetch: d.keys, now: now, log: options.Log},
		parser: jwt.NewParser(
			jwt.WithValidMethods(algorithms),
			jwt.WithIssuer(options.Issuer),
			jwt.WithAudience(options.Audience),
			jwt.WithExpirationRequired(),
			jwt.WithIssuedAt(),
			jwt.WithLeeway(leeway),
			jwt.WithTimeFunc(now),
			jwt.WithStrictDecoding(),
		),
		cache: reviewcache.New[[sha256.Size]byte, *Caller](reviewcache.MaxEntries, now),
	}, nil
}

// Authenticate implements Authenticator.
func (o *OIDC) Authenticate(r *http.Request) (*Caller, error) {
	token, err := bearer(r.Header)
	if err != nil {
		return nil, err
	}
	return o.authenticate(r.Context(), token)
}

func (o *OIDC) authenticate(ctx context.Context, token string) (*Caller, error) {
	caller, allowed, err := o.cache.Get(ctx, sha256.Sum256([]byte(token)), func(ctx context.Context) (*Caller, bool, error) {
		return o.verify(ctx, token)
	})
	if err != nil {
		return nil, fmt.Errorf("OIDC: %w", err)
	}
	if !allowed || caller.expired(o.now()) {
		return nil, ErrInvalidToken
	}
	return caller, nil
}

// verify checks a token. Its error is that the issuer could not be asked.
func (o *OIDC) verify(ctx context.Context, token string) (*Caller, bool, error) {
	claims := jwt.MapClaims{}
	var asking error
	_, err := o.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		if _, ok := t.Header["crit"]; ok {
			return nil, errors.New("it has a critical header, and none is understood") // RFC 7515 §4.1.11
		}
		id, _ := t.Header["kid"].(string)
		key, err := o.keys.find(ctx, id, t.Method.Alg())
		if err != nil && !errors.Is(err, errNoKey) {
			asking = err
		}
		return key, err
	})
	if asking != nil {
		return nil, false, asking
	}
	var caller *Caller
	if err == nil {
		caller, err = o.caller(claims)
	}
	if err != nil {
		o.options.Log.DebugContext(ctx, "Token of the OIDC issuer was refused", "error", err)
		return nil, false, nil
	}
	return caller, true, nil
}

// caller is who the claims name. Its name begins with the issuer, so that no
// subject is another issuer's, or one of Kubernetes' own.
func (o *OIDC) caller(claims jwt.MapClaims) (*Caller, error) {
	subject, err := claims.GetSubject()
	if err != nil {
		return nil, err
	}
	if !printable(subject) || len(subject) > maxSubject {
		return nil, fmt.Errorf("sub must be 1 to %d bytes of printable text", maxSubject)
	}
	groups, err := o.groups(claims)
	if err != nil {
		return nil, err
	}
	expires, err := claims.GetExpirationTime()
	if err != nil {
		return nil, err
	}
	c := newCaller(authenticationv1.UserInfo{Username: OIDCUser(o.options.Issuer, subject), Groups: groups})
	c.expires = expires.Time
	return c, nil
}

// OIDCUser is what a subject of an issuer is called. An issuer holds no #.
func OIDCUser(issuer, subject string) string { return "oidc:" + issuer + "#" + subject }

// groups are the caller's, without those that Kubernetes keeps for itself.
func (o *OIDC) groups(claims jwt.MapClaims) ([]string, error) {
	if o.options.GroupsClaim == "" {
		return nil, nil
	}
	var list []any
	switch v := claims[o.options.GroupsClaim].(type) {
	case nil:
	case string:
		list = []any{v}
	case []any:
		list = v
	default:
		return nil, fmt.Errorf("claim %s is neither text nor a list", o.options.GroupsClaim)
	}
	var groups []string
	for _, item := range list {
		group, ok := item.(string)
		if !ok || !printable(group) {
			return nil, fmt.Errorf("claim %s holds something else than printable text", o.options.GroupsClaim)
		}
		if !strings.HasPrefix(group, systemPrefix) {
			groups = append(groups, group)
		}
	}
	return groups, nil
}

func printable(s string) bool {
	return s != "" && utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
