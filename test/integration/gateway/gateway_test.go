package gateway_test

import (
	"context"
	"net/http"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
)

// sandboxOf waits for a session's Sandbox.
func sandboxOf(ctx context.Context, namespace, name string) *v1alpha1.Sandbox {
	GinkgoHelper()
	var s v1alpha1.Sandbox
	Eventually(func() error {
		return admin.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &s)
	}).WithTimeout(effective).Should(Succeed())
	return &s
}

func exists(ctx context.Context, namespace, name string) bool {
	GinkgoHelper()
	err := admin.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &v1alpha1.Sandbox{})
	if errors.IsNotFound(err) {
		return false
	}
	Expect(err).NotTo(HaveOccurred())
	return true
}

func remove(ctx context.Context, url, token, session string) int {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(ctx, http.MethodDelete, url+"/sessions/"+session, nil)
	Expect(err).NotTo(HaveOccurred())
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	Expect(err).NotTo(HaveOccurred())
	Expect(resp.Body.Close()).To(Succeed())
	return resp.StatusCode
}

var _ = Describe("A caller", func() {
	It("is refused with a token for another audience (R18)", func(ctx SpecContext) {
		url := startGateway(startAgent(0).options())
		c := newCaller(ctx, "create")
		for _, token := range []string{c.token(ctx), c.token(ctx, "another"), "no-token"} {
			_, err := connect(ctx, url, token, "s")
			Expect(err).To(MatchError(ContainSubstring("Unauthorized")))
		}
	})

	It("needs the right to sandboxes/session, and nothing is made without (R18)", func(ctx SpecContext) {
		url := startGateway(startAgent(0).options())
		c := newCaller(ctx)
		session, err := connect(ctx, url, c.token(ctx, audience), "s")
		Expect(err).NotTo(HaveOccurred())
		failed, text := bash(ctx, session)
		Expect(failed).To(BeTrue())
		Expect(text).To(HavePrefix("sandbox exec failed: not allowed"))
		Expect(exists(ctx, c.namespace, "s")).To(BeFalse())
		Expect(remove(ctx, url, c.token(ctx, audience), "s")).To(Equal(http.StatusForbidden))
	})

	It("gets a session of its own in its own namespace, which no other reaches (R14, R18)", func(ctx SpecContext) {
		a := startAgent(0)
		url := startGateway(a.options())
		alice := newCaller(ctx, "create", "delete")
		bob := newCallerIn(ctx, alice.namespace, "bob", "create", "delete")
		session, err := connect(ctx, url, alice.token(ctx, audience), "s")
		Expect(err).NotTo(HaveOccurred())
		go func() {
			defer GinkgoRecover()
			makeReady(ctx, sandboxOf(ctx, alice.namespace, "s"), a)
		}()
		failed, text := bash(ctx, session)
		Expect(failed).To(BeFalse(), text)
		Expect(sandboxOf(ctx, alice.namespace, "s").Spec.Owner).To(Equal(alice.user()))

		stranger, err := connect(ctx, url, bob.token(ctx, audience), "s")
		Expect(err).NotTo(HaveOccurred())
		failed, text = bash(ctx, stranger)
		Expect(failed).To(BeTrue())
		Expect(text).To(Equal("sandbox exec failed: session not available"))
		Expect(remove(ctx, url, bob.token(ctx, audience), "s")).To(Equal(http.StatusNoContent))
		Expect(exists(ctx, alice.namespace, "s")).To(BeTrue())
		Expect(remove(ctx, url, alice.token(ctx, audience), "s")).To(Equal(http.StatusNoContent))
		Expect(exists(ctx, alice.namespace, "s")).To(BeFalse())
	})
})

var _ = Describe("A session", func() {
	It("is one Sandbox for 40 parallel first calls over two gateways (R14)", func(ctx SpecContext) {
		a := startAgent(0)
		urls := []string{startGateway(a.options()), startGateway(a.options())}
		c := newCaller(ctx, "create")
		token := c.token(ctx, audience)
		go func() {
			defer GinkgoRecover()
			makeReady(ctx, sandboxOf(ctx, c.namespace, "crowd"), a)
		}()
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				defer GinkgoRecover()
				session, err := connect(ctx, urls[i%2], token, "crowd")
				Expect(err).NotTo(HaveOccurred())
				failed, text := bash(ctx, session)
				Expect(failed).To(BeFalse(), text)
			})
		}
		all.Wait()
		Expect(a.runs.Load()).To(BeEquivalentTo(40))
		var list v1alpha1.SandboxList
		Expect(admin.List(ctx, &list, client.InNamespace(c.namespace))).To(Succeed())
		Expect(list.Items).To(HaveLen(1))
	})

	It("is a fresh Sandbox at once after its end (R17)", func(ctx SpecContext) {
		old, fresh := startAgent(0), (*fakeAgent)(nil)
		fresh = startAgent(old.port)
		url := startGateway(old.options())
		c := newCaller(ctx, "create", "delete")
		token := c.token(ctx, audience)
		session, err := connect(ctx, url, token, "again")
		Expect(err).NotTo(HaveOccurred())
		for i, a := range []*fakeAgent{old, fresh, fresh} {
			go func() {
				defer GinkgoRecover()
				makeReady(ctx, sandboxOf(ctx, c.namespace, "again"), a)
			}()
			failed, text := bash(ctx, session)
			Expect(failed).To(BeFalse(), "round %d: %s", i, text)
			Expect(remove(ctx, url, token, "again")).To(Equal(http.StatusNoContent))
		}
		Expect(old.runs.Load()).To(BeEquivalentTo(1))
		Expect(fresh.runs.Load()).To(BeEquivalentTo(2))
	})

	It("says that its namespace is gone when it is", func(ctx SpecContext) {
		url := startGateway(startAgent(0).options())
		c := newCaller(ctx, "create")
		token := c.token(ctx, audience)
		session, err := connect(ctx, url, token, "s")
		Expect(err).NotTo(HaveOccurred())
		Expect(admin.Delete(ctx, &corev1.Namespace{ObjectMeta: metaOf(c.namespace)})).To(Succeed())
		_, text := bash(ctx, session)
		Expect(text).To(HavePrefix(`sandbox exec failed: namespace "` + c.namespace + `" is being deleted`))
	})
})
