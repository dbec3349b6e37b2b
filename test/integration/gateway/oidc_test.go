package gateway_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway"
	"github.com/berth-dev/berth/test/integration/apiserver"
)

// issuer is an OpenID provider on loopback.
type issuer struct {
	url string
	key ed25519.PrivateKey
}

func startIssuer() *issuer {
	GinkgoHelper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	DeferCleanup(server.Close)
	for path, document := range map[string]any{
		"/.well-known/openid-configuration": map[string]string{"issuer": server.URL, "jwks_uri": server.URL + "/keys"},
		"/keys": map[string]any{"keys": []map[string]string{{
			"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": base64.RawURLEncoding.EncodeToString(public),
		}}},
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			defer GinkgoRecover()
			Expect(json.NewEncoder(w).Encode(document)).To(Succeed())
		})
	}
	return &issuer{server.URL, private}
}

func (i *issuer) token(subject string, groups ...string) string {
	GinkgoHelper()
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
		"iss": i.url, "aud": "berth", "sub": subject, "groups": groups, "exp": time.Now().Add(time.Hour).Unix(),
	})
	token.Header["kid"] = "k"
	signed, err := token.SignedString(i.key)
	Expect(err).NotTo(HaveOccurred())
	return signed
}

// groupMay tells whether the API server's authorizer knows of a group's right already.
func groupMay(ctx context.Context, group, verb string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "anybody", Groups: []string{group},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: "sandboxes", Group: "berth.dev", Resource: "sandboxes", Subresource: "session", Verb: verb,
		},
	}}
	err := admin.Create(ctx, review)
	return review.Status.Allowed, err
}

// run is bash of a caller, in a session, with a header of its own.
func run(ctx context.Context, url, token, session, header, value string) (failed bool, text string) {
	GinkgoHelper()
	transport := withHeader{withHeaders{http.DefaultTransport, token, session}, header, value}
	c, err := mcp.NewClient(&mcp.Implementation{Name: "spec", Version: "1"}, nil).Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: url + "/mcp", DisableStandaloneSSE: true, MaxRetries: -1, HTTPClient: &http.Client{Transport: transport},
	}, nil)
	Expect(err).NotTo(HaveOccurred())
	return bash(ctx, c)
}

type withHeader struct {
	http.RoundTripper
	name, value string
}

func (h withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(h.name, h.value)
	return h.RoundTripper.RoundTrip(r)
}

var _ = Describe("A caller of an OpenID Connect issuer", func() {
	It("may what the sample roles give its groups, and no more (R18)", func(ctx SpecContext) {
		roles, err := apiserver.Read("config/samples/roles.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(apiserver.Apply(ctx, admin, roles)).To(Succeed())
		for group, verb := range map[string]string{"developers": "create", "reviewers": "get", "platform-team": "delete"} {
			Eventually(groupMay).WithContext(ctx).WithArguments(group, verb).WithTimeout(effective).Should(BeTrue())
		}
		i := startIssuer()
		url := startGateway(startAgent(0).options(), func(o *gateway.Options) {
			o.Auth, o.OIDC.Issuer, o.OIDC.Audience = "tokenreview,oidc", i.url, "berth"
			o.ReadyTimeout = 100 * time.Millisecond // nobody makes sessions ready here
		})
		const template = "X-Sandbox-Template"
		user, reader, administrator := i.token("alice", "developers"), i.token("rita", "reviewers"), i.token("ada", "platform-team")
		intruder := i.token("system:admin", "system:masters")

		By("making sessions of users, as theirs")
		_, text := run(ctx, url, user, "oidc-user", template, "default")
		Expect(text).To(ContainSubstring("is not ready"))
		Expect(sandboxOf(ctx, "sandboxes", "oidc-user").Spec.Owner).To(Equal("oidc:" + i.url + "#alice"))

		By("asking who may use another template")
		_, text = run(ctx, url, user, "oidc-gpu", template, "gpu")
		Expect(text).To(HavePrefix("sandbox exec failed: not allowed: the caller needs a role that grants use on sandboxtemplates"))
		Expect(exists(ctx, "sandboxes", "oidc-gpu")).To(BeFalse())
		_, text = run(ctx, url, administrator, "oidc-gpu", template, "gpu")
		Expect(text).To(ContainSubstring("is not ready"))
		Expect(sandboxOf(ctx, "sandboxes", "oidc-gpu").Spec.TemplateRef.Name).To(Equal("gpu"))

		By("refusing readers, those without a role, and service accounts of other namespaces")
		account := newCaller(ctx, "create", "delete").token(ctx, audience)
		for _, token := range []string{reader, intruder, account} {
			_, text = run(ctx, url, token, "oidc-none", "X-Sandbox-Namespace", "sandboxes")
			Expect(text).To(HavePrefix("sandbox exec failed: not allowed"))
		}
		Expect(exists(ctx, "sandboxes", "oidc-none")).To(BeFalse())
		for _, token := range []string{reader, intruder} {
			Expect(remove(ctx, url, token, "oidc-user")).To(Equal(http.StatusForbidden))
		}

		By("leaving another's session alone")
		Expect(remove(ctx, url, administrator, "oidc-user")).To(Equal(http.StatusNoContent))
		Expect(exists(ctx, "sandboxes", "oidc-user")).To(BeTrue())
		Expect(remove(ctx, url, user, "oidc-user")).To(Equal(http.StatusNoContent))
		Expect(exists(ctx, "sandboxes", "oidc-user")).To(BeFalse())
	})
})
