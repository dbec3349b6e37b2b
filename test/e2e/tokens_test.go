package e2e

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/sandbox-agent/token"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/session"
)

const execPath = "/v1/exec"

// agent is a session's agent, spoken to without the gateway by one who could
// read the signing key.
type agent struct {
	address  string
	audience string
	kid      string
	key      ed25519.PrivateKey
}

// agentOf reaches the agent of a session by a forwarded port, past all policies:
// only the token stands between.
func (t *tenant) agentOf(ctx context.Context, id string) *agent {
	GinkgoHelper()
	status := t.sandbox(ctx, id).Status
	return &agent{
		address:  forward(ctx, client.ObjectKey{Namespace: t.namespace, Name: status.PodName}, agentPort),
		audience: token.Audience(t.namespace, status.PodUID),
		kid:      status.KeyID,
		key:      signingKey(ctx, status.KeyID),
	}
}

// signingKey reads a key as only an administrator can.
func signingKey(ctx context.Context, kid string) ed25519.PrivateKey {
	GinkgoHelper()
	secret := &corev1.Secret{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: cluster.SigningKeySecret}, secret)).To(Succeed())
	block, _ := pem.Decode(secret.Data[kid+".pem"])
	Expect(block).NotTo(BeNil(), "key %s", kid)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	Expect(err).NotTo(HaveOccurred())
	return key.(ed25519.PrivateKey)
}

// claims are those of a good token for running a command.
func (a *agent) claims() token.Claims {
	return token.NewClaims(a.audience, http.MethodPost, execPath, time.Now())
}

func (a *agent) sign(claims token.Claims) string {
	GinkgoHelper()
	signed, err := token.Sign(claims, a.kid, a.key)
	Expect(err).NotTo(HaveOccurred())
	return signed
}

// exec asks the agent to note that it ran, with these Authorization headers, and
// gives the status.
func (a *agent) exec(ctx context.Context, authorization ...string) int {
	GinkgoHelper()
	body := bytes.NewBufferString(`{"command":"echo >> /workspace/ran"}`)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+a.address+execPath, body)
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/json")
	request.Header["Authorization"] = authorization
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	_, err = io.Copy(io.Discard, response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	return response.StatusCode
}

var _ = Describe("An agent", func() {
	It("answers 401 to every token but a fresh one that is its own, and runs nothing", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("s"))
		run(ctx, s, "true")
		run(ctx, connect(ctx, t.target("other")), "true")
		a, other := t.agentOf(ctx, "s"), t.agentOf(ctx, "other")

		edited := func(edit func(*token.Claims)) string {
			claims := a.claims()
			edit(&claims)
			return a.sign(claims)
		}
		_, strangersKey, err := ed25519.GenerateKey(nil)
		Expect(err).NotTo(HaveOccurred())
		forged, err := token.Sign(a.claims(), a.kid, strangersKey)
		Expect(err).NotTo(HaveOccurred())
		unknown, err := token.Sign(a.claims(), "key-9999", a.key)
		Expect(err).NotTo(HaveOccurred())
		payload := strings.Split(a.sign(a.claims()), ".")[1]

		for what, bad := range map[string]string{
			"garbage":                       "garbage",
			"no signature":                  base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + payload + ".",
			"a stranger's key":              forged,
			"an unknown key ID":             unknown,
			"another pod":                   other.sign(other.claims()),
			"another namespace":             edited(func(c *token.Claims) { c.Audience = strings.Replace(c.Audience, t.namespace, "default", 1) }),
			"another method":                edited(func(c *token.Claims) { c.Method = http.MethodGet }),
			"another path":                  edited(func(c *token.Claims) { c.Path = "/v1/artifacts" }),
			"expired":                       edited(func(c *token.Claims) { c.IssuedAt -= 600; c.Expires -= 600 }),
			"of the future":                 edited(func(c *token.Claims) { c.IssuedAt += 600; c.Expires += 600 }),
			"longer than 60 s":              edited(func(c *token.Claims) { c.Expires = c.IssuedAt + 3600 }),
			"without an ID":                 edited(func(c *token.Claims) { c.ID = "" }),
			"a caller's, not the gateway's": t.token,
		} {
			Expect(a.exec(ctx, "Bearer "+bad)).To(Equal(http.StatusUnauthorized), what)
		}
		Expect(a.exec(ctx)).To(Equal(http.StatusUnauthorized), "no token")
		Expect(a.exec(ctx, "Basic "+a.sign(a.claims()))).To(Equal(http.StatusUnauthorized), "another scheme")
		Expect(run(ctx, s, "ls /workspace")).To(BeEmpty(), "nothing ran")

		once := a.sign(a.claims())
		Expect(a.exec(ctx, "Bearer "+once)).To(Equal(http.StatusOK), "a good token, or this spec proves nothing")
		Expect(a.exec(ctx, "Bearer "+once)).To(Equal(http.StatusUnauthorized), "replayed")
		Expect(run(ctx, s, "wc -l < /workspace/ran")).To(Equal("1\n"))
	}, SpecTimeout(specTimeout))

	It("cannot be used with what its own sandbox knows", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("s"))
		Expect(run(ctx, s, "env; export -p")).NotTo(ContainSubstring("BERTH_"))
		result, err := s.Bash(ctx, "cat /proc/1/environ; ls /proc/1/fd; ls /var/run/secrets")
		Expect(err).NotTo(HaveOccurred())
		Expect(result.ExitCode).NotTo(BeZero())
		Expect(result.Stdout).To(BeEmpty(), "neither the agent's environment nor a service account's token")
	}, SpecTimeout(specTimeout))
})

var _ = Describe("The gateway", func() {
	It("refuses callers without a token of its own audience", func(ctx context.Context) {
		t := newTenant(ctx)
		account := client.ObjectKey{Namespace: t.namespace, Name: "caller"}
		foreign, err := admin.TokenFor(ctx, account, "another-audience")
		Expect(err).NotTo(HaveOccurred())
		for what, token := range map[string]string{"none": "", "garbage": "garbage", "of another audience": foreign} {
			target := t.target("s")
			target.Token = token
			Expect(initialize(ctx, target)).To(Equal(http.StatusUnauthorized), what)
		}
		Expect(initialize(ctx, t.target("s"))).To(Equal(http.StatusOK))
	}, SpecTimeout(specTimeout))

	It("gives a session to its owner alone", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("mine"))
		run(ctx, s, "echo secret > file")
		Expect(t.sandbox(ctx, "mine").Spec.Owner).To(Equal("system:serviceaccount:" + t.namespace + ":caller"))

		stranger := t.target("mine")
		stranger.Token = t.newCaller(ctx, "stranger")
		_, err := connect(ctx, stranger).Bash(ctx, "cat file")
		Expect(err).To(MatchError(ContainSubstring("session not available")))
	}, SpecTimeout(specTimeout))

	It("refuses a caller whom RBAC doesn't let use sessions", func(ctx context.Context) {
		t := newTenant(ctx)
		account := &corev1.ServiceAccount{}
		account.Namespace, account.Name = t.namespace, "nobody"
		Expect(admin.Create(ctx, account)).To(Succeed())
		target := t.target("s")
		var err error
		target.Token, err = admin.Token(ctx, client.ObjectKeyFromObject(account))
		Expect(err).NotTo(HaveOccurred())
		_, err = connect(ctx, target).Bash(ctx, "true")
		Expect(err).To(MatchError(ContainSubstring("not allowed")))
		sandboxes := &v1alpha1.SandboxList{}
		Expect(admin.List(ctx, sandboxes, client.InNamespace(t.namespace))).To(Succeed())
		Expect(sandboxes.Items).To(BeEmpty(), "nothing was made for it")
	}, SpecTimeout(specTimeout))
})

// initialize sends what an MCP client of the old era sends first, and gives the
// HTTP status.
func initialize(ctx context.Context, target session.Target) int {
	GinkgoHelper()
	body := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"e2e","version":"v1"}}}`)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+target.Address+"/mcp", body)
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	if target.Token != "" {
		request.Header.Set("Authorization", "Bearer "+target.Token)
	}
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	return response.StatusCode
}
