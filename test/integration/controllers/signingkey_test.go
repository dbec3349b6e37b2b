package controllers_test

import (
	"context"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers/signingkey"
	agent "github.com/berth-dev/berth/sandbox-agent/client"
)

var _ = Describe("The signing key (R9)", func() {
	secret := func(ctx context.Context, namespace string) *corev1.Secret {
		GinkgoHelper()
		stored := &corev1.Secret{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: signingkey.SecretName}, stored)).To(Succeed())
		return stored
	}
	newPEM := func() []byte {
		GinkgoHelper()
		pem, err := agent.GenerateKey()
		Expect(err).NotTo(HaveOccurred())
		return pem
	}

	It("is made once, whoever starts first, and never written again", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		const replicas = 8
		var all sync.WaitGroup
		kids := make([]string, replicas)
		for i := range replicas {
			all.Go(func() {
				defer GinkgoRecover()
				ring, err := signingkey.Ensure(ctx, admin, namespace)
				Expect(err).NotTo(HaveOccurred())
				kids[i], err = ring.PublicKeys()
				Expect(err).NotTo(HaveOccurred())
			})
		}
		all.Wait()
		Expect(kids).To(HaveEach(kids[0]), "replicas use different keys")
		stored := secret(ctx, namespace)
		Expect(stored.Type).To(Equal(corev1.SecretTypeOpaque))
		Expect(stored.Data).To(HaveLen(1))
		_, err := signingkey.Ensure(ctx, admin, namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(secret(ctx, namespace).ResourceVersion).To(Equal(stored.ResourceVersion))
	})

	DescribeTable("is refused when it is unusable, and left as it is",
		func(ctx SpecContext, data map[string][]byte) {
			namespace := newNamespace(ctx)
			broken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: signingkey.SecretName}, Data: data}
			Expect(admin.Create(ctx, broken)).To(Succeed())
			_, err := signingkey.Ensure(ctx, admin, namespace)
			Expect(err).To(MatchError(And(ContainSubstring("can't be used"), ContainSubstring(namespace+"/"+signingkey.SecretName))))
			Expect(secret(ctx, namespace).ResourceVersion).To(Equal(broken.ResourceVersion))
		},
		Entry("without an entry", map[string][]byte{}),
		Entry("with an empty entry", map[string][]byte{"key-0001.pem": {}}),
		Entry("with nonsense", map[string][]byte{"key-0001.pem": []byte("nonsense")}),
		Entry("with an entry of another name", map[string][]byte{"tls.crt": []byte("x")}),
	)

	It("never gives the name of a lost key to a new one", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		Expect(admin.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "born-before",
				Labels:      map[string]string{v1alpha1.LabelSandboxUID: "uid"},
				Annotations: map[string]string{v1alpha1.AnnotationKeyID: "key-0041"},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "x"}}},
		})).To(Succeed())
		ring, err := signingkey.Ensure(ctx, admin, namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(ring.NewestKeyID()).To(Equal("key-0042"))
	})

	It("is rotated by adding one, and a broken ring leaves the last good one in use", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		ring, err := signingkey.Ensure(ctx, admin, namespace)
		Expect(err).NotTo(HaveOccurred())
		recorder := events.NewFakeRecorder(10)
		keeper := signingkey.NewController(admin, recorder, namespace, ring)
		request := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: signingkey.SecretName}}

		old := ring.NewestKeyID()
		stored := secret(ctx, namespace)
		stored.Data["key-9999.pem"] = newPEM()
		Expect(admin.Update(ctx, stored)).To(Succeed())
		_, err = keeper.Reconcile(ctx, request)
		Expect(err).NotTo(HaveOccurred())
		Expect(keeper.Current().NewestKeyID()).To(Equal("key-9999"))
		Expect(keeper.Current().HasKey(old)).To(BeTrue(), "live pods need the old key")

		stored.Data["key-9999.pem"] = []byte("nonsense")
		Expect(admin.Update(ctx, stored)).To(Succeed())
		_, err = keeper.Reconcile(ctx, request)
		Expect(err).To(MatchError(reconcile.TerminalError(nil)))
		Expect(err.Error()).NotTo(ContainSubstring("nonsense"))
		Expect(recorder.Events).To(Receive(ContainSubstring(signingkey.ReasonSigningKeyBroken)))
		Expect(keeper.Current().NewestKeyID()).To(Equal("key-9999"))

		Expect(admin.Delete(ctx, stored)).To(Succeed())
		_, err = keeper.Reconcile(ctx, request)
		Expect(err).NotTo(HaveOccurred())
		Expect(keeper.Current().HasKey(old)).To(BeTrue())
	})
})
