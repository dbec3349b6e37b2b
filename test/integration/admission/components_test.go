package admission_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/berth-dev/berth/test/integration/apiserver"
)

var _ = Describe("Of the gateway's components", func() {
	It("tls serves a Secret's certificate at 443, and leaves probes and other flags", func(ctx SpecContext) {
		before, after := &appsv1.Deployment{}, &appsv1.Deployment{}
		rendered(ctx, "config/default", "Deployment", "berth-gateway", before)
		rendered(ctx, withDefault("config/tls"), "Deployment", "berth-gateway", after)
		was, is := before.Spec.Template.Spec.Containers[0], after.Spec.Template.Spec.Containers[0]
		Expect(is.Args).To(Equal(append(was.Args, "--tls-cert=/etc/berth/tls/tls.crt", "--tls-key=/etc/berth/tls/tls.key")))
		Expect(is.VolumeMounts).To(ConsistOf(corev1.VolumeMount{Name: "tls", MountPath: "/etc/berth/tls", ReadOnly: true}))
		Expect(after.Spec.Template.Spec.Volumes).To(ConsistOf(HaveField("Secret.SecretName", "berth-gateway-tls")))
		Expect(is.LivenessProbe).To(Equal(was.LivenessProbe))
		Expect(is.ReadinessProbe).To(Equal(was.ReadinessProbe))
		Expect(is.ReadinessProbe.HTTPGet.Port).To(Equal(intstr.FromString("metrics")))

		service := &corev1.Service{}
		rendered(ctx, withDefault("config/tls"), "Service", "berth-gateway", service)
		Expect(service.Spec.Ports).To(ConsistOf(corev1.ServicePort{Name: "https", Port: 443, TargetPort: intstr.FromString("http")}))
		Expect(is.Ports).To(ContainElement(HaveField("Name", "http")), "what the Service leads to")
	})

	It("oidc takes an issuer's tokens, and lets the gateway reach the issuer", func(ctx SpecContext) {
		gateway, policy := &appsv1.Deployment{}, &networkingv1.NetworkPolicy{}
		rendered(ctx, withDefault("config/oidc"), "Deployment", "berth-gateway", gateway)
		args := gateway.Spec.Template.Spec.Containers[0].Args
		Expect(args[len(args)-3:]).To(Equal([]string{"--auth=tokenreview,oidc", "--oidc-issuer=https://login.example.com", "--oidc-audience=berth"}))
		rendered(ctx, withDefault("config/oidc"), "NetworkPolicy", "berth-gateway-oidc", policy)
		Expect(policy.Spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeEgress))
		Expect(policy.Spec.Egress).To(ContainElement(HaveField("To", ContainElement(HaveField("IPBlock.CIDR", "192.0.2.0/24")))))
		for name, value := range policy.Spec.PodSelector.MatchLabels {
			Expect(gateway.Spec.Template.Labels).To(HaveKeyWithValue(name, value))
		}
	})
})

// rendered reads one object of a kustomization.
func rendered(ctx context.Context, dir, kind, name string, into any) {
	GinkgoHelper()
	objects, err := apiserver.Render(ctx, dir)
	Expect(err).NotTo(HaveOccurred())
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)).To(Succeed())
			return
		}
	}
	Fail("no " + kind + " " + name + " in " + dir)
}
