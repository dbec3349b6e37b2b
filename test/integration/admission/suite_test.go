// Package admission_test holds what the API server itself refuses: the rules of
// the CRDs, the admission policies, and the roles that are shipped.
package admission_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/integration/apiserver"
)

// effective is how long the API server may take to act on a new policy, role or
// binding: its caches follow by watch.
const effective = 30 * time.Second

var (
	config *rest.Config
	admin  client.Client
	scheme = runtime.NewScheme()
)

func TestAdmission(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Admission")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	environment, err := apiserver.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(environment.Stop)
	config = environment.Config
	config.QPS = -1
	admin, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())

	// What is installed is what is tested: all of config/default.
	installed, err := apiserver.Render(ctx, "config/default")
	Expect(err).NotTo(HaveOccurred())
	Expect(apiserver.Apply(ctx, admin, installed)).To(Succeed())
	waitForPolicies(ctx)
})

// waitForPolicies waits until each policy refuses what it is there to refuse.
func waitForPolicies(ctx context.Context) {
	GinkgoHelper()
	namespace := newNamespace(ctx)
	nobody := newUser(ctx, namespace,
		allow("create", "berth.dev", "sandboxes"), allow("create", "berth.dev", "sandboxtemplates"))
	podMaker := newUser(ctx, namespace, allow("create", "", "pods"))
	for _, refused := range []struct {
		by     user
		object func() client.Object
	}{
		{nobody, func() client.Object {
			return newSandbox(namespace, func(s *v1alpha1.Sandbox) { s.Spec.Owner = "somebody-else" })
		}},
		{nobody, func() client.Object { return newTemplate(namespace) }},
		{podMaker, func() client.Object {
			return newPod(namespace, map[string]string{v1alpha1.LabelSandboxUID: "1"})
		}},
	} {
		Eventually(func() error {
			return refused.by.Create(ctx, refused.object(), client.DryRunAll)
		}).WithContext(ctx).WithTimeout(effective).Should(BeForbidden())
	}
}

// newNamespace makes a namespace that no other spec uses.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}}
	Expect(admin.Create(ctx, namespace)).To(Succeed())
	return namespace.Name
}

func newSandbox(namespace string, edits ...func(*v1alpha1.Sandbox)) *v1alpha1.Sandbox {
	sandbox := &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "session"}}
	for _, edit := range edits {
		edit(sandbox)
	}
	return sandbox
}

func newTemplate(namespace string, edits ...func(*v1alpha1.SandboxTemplate)) *v1alpha1.SandboxTemplate {
	template := &v1alpha1.SandboxTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "template"},
		Spec: v1alpha1.SandboxTemplateSpec{PodTemplate: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: v1alpha1.SessionContainerName, Image: "image"}}},
		}},
	}
	for _, edit := range edits {
		edit(template)
	}
	return template
}

func newPod(namespace string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod", Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	}
}
