package gateway_test

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway"
	"github.com/berth-dev/berth/test/integration/apiserver"
	"github.com/berth-dev/berth/test/issuer"
)

// openID is an OpenID provider on loopback.
type openID struct{ *issuer.Issuer }

func startIssuer() openID {
	GinkgoHelper()
	i, err := issuer.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(i.Stop)
	return openID{i}
}

func (i openID) token(subject string, groups ...string) string {
	GinkgoHelper()
	signed, err := i.Token(subject, groups...)
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
			o.Auth, o.OIDC.Issuer, o.OIDC.Audience = "tokenreview,oidc", i.URL, issuer.Audience
			o.ReadyTimeout = 100 * time.Millisecond // nobody makes sessions ready here
		})
		const template = "X-Sandbox-Template"
		user, reader, administrator := i.token("alice", "developers"), i.token("rita", "reviewers"), i.token("ada", "platform-team")
		intruder := i.token("system:admin", "system:masters")

		By("making sessions of users, as theirs")
		_, text := run(ctx, url, user, "oidc-user", template, "default")
		Expect(text).To(ContainSubstring("is not ready"))
		Expect(sandboxOf(ctx, "sandboxes", "oidc-user").Spec.Owner).To(Equal("oidc:" + i.URL + "#alice"))

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
