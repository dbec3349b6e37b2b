package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/session"
)

// tenant is a namespace of one spec, with a caller whose sessions are there.
type tenant struct {
	namespace string
	token     string
	gateways  []string // addresses, host:port, one for each replica
}

// newTenant makes a namespace that enforces Pod Security "restricted", the
// template default with the small image, and a caller.
func newTenant(ctx context.Context, edit ...func(*v1alpha1.SandboxTemplate)) *tenant {
	GinkgoHelper()
	t := newBareTenant(ctx)
	t.addTemplate(ctx, v1alpha1.DefaultTemplateName, edit...)
	return t
}

// newBareTenant makes a namespace and a caller, and no template.
func newBareTenant(ctx context.Context) *tenant {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "e2e-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	Expect(admin.Create(ctx, namespace)).To(Succeed())
	// How long that takes is the affair of a spec of its own.
	DeferCleanup(func(ctx context.Context) {
		Expect(client.IgnoreNotFound(admin.Delete(ctx, namespace))).To(Succeed())
	}, NodeTimeout(cleanUpTimeout))
	reportOnFailure(namespace.Name)

	t := &tenant{namespace: namespace.Name, gateways: forwardGateways(ctx)}
	t.token = t.newCaller(ctx, "caller")
	return t
}

// newCaller makes a service account that may use sessions, and gives its token.
func (t *tenant) newCaller(ctx context.Context, name string) (token string) {
	GinkgoHelper()
	caller := client.ObjectKey{Namespace: t.namespace, Name: name}
	Expect(admin.CreateCaller(ctx, caller)).To(Succeed())
	token, err := admin.Token(ctx, caller)
	Expect(err).NotTo(HaveOccurred())
	return token
}

// addTemplate makes a template of the small image, edited.
func (t *tenant) addTemplate(ctx context.Context, name string, edit ...func(*v1alpha1.SandboxTemplate)) {
	GinkgoHelper()
	Expect(admin.Create(ctx, newTemplate(t.namespace, name, edit...))).To(Succeed())
}

func newTemplate(namespace, name string, edit ...func(*v1alpha1.SandboxTemplate)) *v1alpha1.SandboxTemplate {
	template := &v1alpha1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	template.Spec.PodTemplate.Spec.Containers = []corev1.Container{{
		Name: v1alpha1.SessionContainerName, Image: image("sandbox-small"),
	}}
	for _, e := range edit {
		e(template)
	}
	return template
}

// withImage uses another image.
func withImage(name string) func(*v1alpha1.SandboxTemplate) {
	return func(t *v1alpha1.SandboxTemplate) { t.Spec.PodTemplate.Spec.Containers[0].Image = name }
}

// withRequests asks for resources, and limits memory to what it asks for.
func withResources(resources corev1.ResourceRequirements) func(*v1alpha1.SandboxTemplate) {
	return func(t *v1alpha1.SandboxTemplate) { t.Spec.PodTemplate.Spec.Containers[0].Resources = resources }
}

// withNetwork opens the network.
func withNetwork(network v1alpha1.Network) func(*v1alpha1.SandboxTemplate) {
	return func(t *v1alpha1.SandboxTemplate) { t.Spec.Network = &network }
}

// target is a session of the tenant's caller, at the first gateway.
func (t *tenant) target(id string) session.Target { return t.targetAt(0, id) }

// targetAt is a session of the tenant's caller, at one of the gateway's replicas.
func (t *tenant) targetAt(replica int, id string) session.Target {
	return session.Target{Address: t.gateways[replica], Token: t.token, ID: id}
}

// connect connects an MCP client; it is closed with the spec.
func connect(ctx context.Context, target session.Target) *session.Session {
	GinkgoHelper()
	s, err := session.Connect(ctx, target)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		// Its gateway may be gone by now, which says nothing about the spec.
		_ = s.Close()
	})
	return s
}

// run runs a command that must succeed, and gives its standard output.
func run(ctx context.Context, s *session.Session, command string) string {
	GinkgoHelper()
	result, err := s.Bash(ctx, command)
	Expect(err).NotTo(HaveOccurred())
	Expect(result.ExitCode).To(BeZero(), "%q wrote to stderr: %s", command, result.Stderr)
	return result.Stdout
}

// sandbox gets a session's Sandbox.
func (t *tenant) sandbox(ctx context.Context, id string) *v1alpha1.Sandbox {
	GinkgoHelper()
	sandbox := &v1alpha1.Sandbox{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: id}, sandbox)).To(Succeed())
	return sandbox
}

// podOf gives the name of a session's pod.
func (t *tenant) podOf(ctx context.Context, id string) client.ObjectKey {
	GinkgoHelper()
	name := t.sandbox(ctx, id).Status.PodName
	Expect(name).NotTo(BeEmpty(), "session %s has no pod", id)
	return client.ObjectKey{Namespace: t.namespace, Name: name}
}

// newSandbox makes a Sandbox as kubectl would, of a template.
func (t *tenant) newSandbox(ctx context.Context, id, template string) *v1alpha1.Sandbox {
	GinkgoHelper()
	sandbox := &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: id}}
	sandbox.Spec.TemplateRef.Name = template
	Expect(admin.Create(ctx, sandbox)).To(Succeed())
	return sandbox
}

// waitReady waits until a Sandbox is Ready, and gives it as it then is.
func (t *tenant) waitReady(ctx context.Context, id string) *v1alpha1.Sandbox {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	sandbox := &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: id}}
	Expect(admin.WaitForReady(ctx, sandbox)).To(Succeed())
	return sandbox
}

// forwardGateways opens a port to each replica of the gateway, for as long as the
// spec lasts.
func forwardGateways(ctx context.Context) []string {
	GinkgoHelper()
	pods, err := admin.ReadyPods(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: "berth-gateway"})
	Expect(err).NotTo(HaveOccurred())
	var addresses []string
	for _, pod := range pods {
		addresses = append(addresses, forward(ctx, client.ObjectKeyFromObject(&pod), cluster.GatewayPort))
	}
	return addresses
}

// forward opens a port to a pod for as long as the spec lasts.
func forward(ctx context.Context, pod client.ObjectKey, port int) (address string) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(cancel)
	address, err := admin.Forward(ctx, pod, port)
	Expect(err).NotTo(HaveOccurred())
	return address
}

// sessionPods lists the pods that were made for a Sandbox, those on their way out
// included.
func (t *tenant) sessionPods(ctx context.Context, id string) []corev1.Pod {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(admin.List(ctx, pods, client.InNamespace(t.namespace), client.MatchingLabels{v1alpha1.LabelSandbox: id})).To(Succeed())
	return pods.Items
}

// sessionNames gives n names of sessions that begin alike.
func sessionNames(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return names
}
