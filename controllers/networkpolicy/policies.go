package networkpolicy

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/berth-dev/berth/api/v1alpha1"
	agent "github.com/berth-dev/berth/sandbox-agent/client"
)

const (
	// BaselineName is the policy that closes every session pod of its namespace.
	BaselineName = "berth-baseline"
	// classPrefix begins the name of the policy of an egress class.
	classPrefix = "berth-egress-"
	// templatePrefix begins the name of the policy of a template's own rules.
	templatePrefix = "berth-template-"

	// nameLabel tells Berth's own components apart; config/ sets it.
	nameLabel = "app.kubernetes.io/name"

	dnsPort       = 53
	dnsNamespace  = "kube-system"
	dnsLabelKey   = "k8s-app"
	dnsLabelValue = "kube-dns"
)

// Options are what the policies need to know of the installation.
type Options struct {
	// SystemNamespace is where gateway and controller run.
	SystemNamespace string
	// ClusterCIDRs are the cluster's pod, service and node ranges, which Internet excludes.
	ClusterCIDRs []netip.Prefix
}

// Baseline lets nothing out of session pods, and in only gateway and controller,
// to the agent's port.
func Baseline(namespace string, options Options) *networkingv1.NetworkPolicy {
	return policy(namespace, BaselineName, networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: sessionPods()},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{
			From: []networkingv1.NetworkPolicyPeer{{
				NamespaceSelector: namespaceNamed(options.SystemNamespace),
				PodSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
					Key: nameLabel, Operator: metav1.LabelSelectorOpIn, Values: []string{"berth-controller", "berth-gateway"},
				}}},
			}},
			Ports: []networkingv1.NetworkPolicyPort{port(corev1.ProtocolTCP, agent.Port)},
		}},
	})
}

// ForClass opens what the class allows to the pods born with it. None has no policy.
func ForClass(namespace string, class v1alpha1.EgressClass, options Options) *networkingv1.NetworkPolicy {
	rules := []networkingv1.NetworkPolicyEgressRule{clusterDNS()}
	switch class {
	case v1alpha1.EgressClusterDNS:
	case v1alpha1.EgressInternet:
		rules = append(rules, internet(options.ClusterCIDRs))
	default: // None, and what nobody knows
		return nil
	}
	selector := sessionPods()
	selector[v1alpha1.LabelEgress] = string(class)
	return policy(namespace, className(class), networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: selector},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		Egress:      rules,
	})
}

func className(class v1alpha1.EgressClass) string {
	if class == v1alpha1.EgressInternet {
		return classPrefix + "internet"
	}
	return classPrefix + "cluster-dns"
}

func policy(namespace, name string, spec networkingv1.NetworkPolicySpec) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByBerth},
		},
		Spec: spec,
	}
}

func sessionPods() map[string]string {
	return map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByBerth,
		v1alpha1.LabelComponent: v1alpha1.ComponentSandbox,
	}
}

func namespaceNamed(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
}

func port(protocol corev1.Protocol, number int32) networkingv1.NetworkPolicyPort {
	target := intstr.FromInt32(number)
	return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &target}
}

func clusterDNS() networkingv1.NetworkPolicyEgressRule {
	return networkingv1.NetworkPolicyEgressRule{
		To: []networkingv1.NetworkPolicyPeer{{
			NamespaceSelector: namespaceNamed(dnsNamespace),
			PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{dnsLabelKey: dnsLabelValue}},
		}},
		Ports: []networkingv1.NetworkPolicyPort{port(corev1.ProtocolUDP, dnsPort), port(corev1.ProtocolTCP, dnsPort)},
	}
}

// ForTemplate opens a template's own egress rules to the pods made from it. It is
// the template's child, so that it goes with it.
func ForTemplate(template *v1alpha1.SandboxTemplate) *networkingv1.NetworkPolicy {
	selector := sessionPods()
	selector[v1alpha1.LabelTemplate] = template.Name
	spec := networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: selector},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
	}
	if template.Spec.Network != nil {
		for _, rule := range template.Spec.Network.EgressRules {
			spec.Egress = append(spec.Egress, *withProtocols(rule.DeepCopy()))
		}
	}
	result := policy(template.Namespace, templatePrefix+template.Name, spec)
	result.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(template, v1alpha1.GroupVersion.WithKind("SandboxTemplate"))}
	return result
}

// withProtocols says what the API server would default, so that what is stored
// equals what is wanted.
func withProtocols(rule *networkingv1.NetworkPolicyEgressRule) *networkingv1.NetworkPolicyEgressRule {
	for i := range rule.Ports {
		if tcp := corev1.ProtocolTCP; rule.Ports[i].Protocol == nil {
			rule.Ports[i].Protocol = &tcp
		}
	}
	return rule
}
