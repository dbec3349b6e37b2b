// Package gateway_test holds the gateway against a real API server, with its own
// service account's rights and real callers' tokens. No kubelet and no controller
// run: the specs write Sandboxes' statuses themselves.
package gateway_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/gateway"
	agent "github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/test/integration/apiserver"
)

// effective is how long the API server may take to act on a new role or policy.
const effective = 30 * time.Second

const audience = "berth-gateway"

var (
	config *rest.Config
	admin  client.WithWatch
)

func TestGateway(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Gateway")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	environment, err := apiserver.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(environment.Stop)
	config = environment.Config
	config.QPS = -1
	admin, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())

	installed, err := apiserver.Render(ctx, "config/default")
	Expect(err).NotTo(HaveOccurred())
	Expect(apiserver.Apply(ctx, admin, installed)).To(Succeed())
	key, err := agent.GenerateKey()
	Expect(err).NotTo(HaveOccurred())
	Expect(admin.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "berth-system", Name: "berth-signing-key"},
		Data:       map[string][]byte{"key-0001.pem": key},
	})).To(Succeed())
})

// asGateway acts as the gateway's service account does.
func asGateway() *rest.Config {
	c := rest.CopyConfig(config)
	c.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:berth-system:berth-gateway",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:berth-system", "system:authenticated"},
	}
	return c
}

// startGateway serves until the spec ends and returns the URL. Its flags have their
// defaults but for what change says.
func startGateway(agents agent.Options, change ...func(*gateway.Options)) string {
	GinkgoHelper()
	c, err := gateway.NewClient(asGateway())
	Expect(err).NotTo(HaveOccurred())
	var o gateway.Options
	o.BindFlags(flag.NewFlagSet("", flag.ContinueOnError))
	o.DrainDelay = 0
	for _, c := range change {
		c(&o)
	}
	g, err := gateway.New(o, c, agents, "test", slog.New(slog.NewJSONHandler(GinkgoWriter, nil)))
	Expect(err).NotTo(HaveOccurred())
	main, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	side, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx, main, side) }()
	DeferCleanup(func() {
		stop()
		Eventually(done).WithTimeout(effective).Should(Receive(BeNil()))
	})
	Eventually(func() (int, error) {
		resp, err := http.Get("http://" + side.Addr().String() + "/readyz")
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}).WithTimeout(effective).Should(Equal(http.StatusOK))
	return "http://" + main.Addr().String()
}

// caller is a service account in a namespace of its own.
type caller struct{ namespace, name string }

// newCaller makes a service account that may do verbs on sandboxes/session.
func newCaller(ctx context.Context, verbs ...string) caller {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}
	Expect(admin.Create(ctx, namespace)).To(Succeed())
	return newCallerIn(ctx, namespace.Name, "builder", verbs...)
}

func newCallerIn(ctx context.Context, namespace, name string, verbs ...string) caller {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	Expect(admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta})).To(Succeed())
	if len(verbs) > 0 {
		Expect(admin.Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"berth.dev"}, Resources: []string{"sandboxes/session"}, Verbs: verbs,
		}}})).To(Succeed())
		Expect(admin.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
		})).To(Succeed())
	}
	c := caller{namespace, name}
	for _, verb := range verbs {
		Eventually(c.may).WithContext(ctx).WithArguments(verb).WithTimeout(effective).Should(BeTrue())
	}
	return c
}

// may tells whether the API server's authorizer knows of a right already.
func (c caller) may(ctx context.Context, verb string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: c.user(),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: c.namespace, Group: "berth.dev", Resource: "sandboxes", Subresource: "session", Verb: verb,
		},
	}}
	err := admin.Create(ctx, review)
	return review.Status.Allowed, err
}

// token is one for these audiences; for the API server's own if there are none.
func (c caller) token(ctx context.Context, audiences ...string) string {
	GinkgoHelper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: c.name}}
	Expect(admin.SubResource("token").Create(ctx, account, request)).To(Succeed())
	return request.Status.Token
}

func (c caller) user() string {
	return fmt.Sprintf("system:serviceaccount:%s:%s", c.namespace, c.name)
}

// connect returns an MCP client that calls with a token in a session.
func connect(ctx context.Context, url, token, session string) (*mcp.ClientSession, error) {
	transport := &http.Transport{}
	DeferCleanup(transport.CloseIdleConnections)
	c := mcp.NewClient(&mcp.Implementation{Name: "spec", Version: "1"}, nil)
	return c.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: url + "/mcp", DisableStandaloneSSE: true, MaxRetries: -1,
		HTTPClient: &http.Client{Transport: withHeaders{transport, token, session}},
	}, nil)
}

type withHeaders struct {
	http.RoundTripper
	token, session string
}

func (h withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+h.token)
	r.Header.Set("X-Session-ID", h.session)
	return h.RoundTripper.RoundTrip(r)
}

// bash runs a command and returns whether it failed, and the text.
func bash(ctx context.Context, c *mcp.ClientSession) (failed bool, text string) {
	GinkgoHelper()
	result, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "bash", Arguments: map[string]any{"command": "true"}})
	Expect(err).NotTo(HaveOccurred())
	return result.IsError, result.Content[0].(*mcp.TextContent).Text
}
