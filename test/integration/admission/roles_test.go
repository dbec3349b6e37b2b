package admission_test

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("The shipped roles", func() {
	// Each may do what is listed, and nothing else of what is listed anywhere.
	grants := map[string][]string{
		"berth-view": {
			"get sandboxes", "list sandboxes", "watch sandboxes", "get sandboxes/status",
			"get sandboxtemplates", "list sandboxtemplates", "watch sandboxtemplates", "get sandboxtemplates/status",
		},
		"berth-edit": {
			"create sandboxes", "update sandboxes", "patch sandboxes", "delete sandboxes", "deletecollection sandboxes",
			"create sandboxes/session", "get sandboxes/session", "delete sandboxes/session",
		},
		"berth-admin": {
			"create sandboxtemplates", "update sandboxtemplates", "patch sandboxtemplates",
			"delete sandboxtemplates", "deletecollection sandboxtemplates",
		},
		"berth-caller": {"create sandboxes/session", "get sandboxes/session", "delete sandboxes/session"},
	}

	It("grant users what they need and no more", func(ctx SpecContext) {
		for name, want := range grants {
			role := getClusterRole(ctx, name)
			var got []string
			for _, rule := range role.Rules {
				Expect(rule.APIGroups).To(ConsistOf("berth.dev"), name)
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						got = append(got, verb+" "+resource)
					}
				}
			}
			Expect(got).To(ConsistOf(want), name)
		}
	})

	It("join the built-in view, edit and admin, each those above it", func(ctx SpecContext) {
		for name, into := range map[string][]string{
			"berth-view": {"view", "edit", "admin"}, "berth-edit": {"edit", "admin"}, "berth-admin": {"admin"}, "berth-caller": nil,
		} {
			labels := getClusterRole(ctx, name).Labels
			for _, builtin := range []string{"view", "edit", "admin"} {
				_, joins := labels["rbac.authorization.k8s.io/aggregate-to-"+builtin]
				Expect(joins).To(Equal(slices.Contains(into, builtin)), "%s into %s", name, builtin)
			}
		}
	})

	It("hold no wildcard, and the gateway's touches no pod and no Secret but the key", func(ctx SpecContext) {
		roles := &rbacv1.RoleList{}
		Expect(admin.List(ctx, roles, client.InNamespace("berth-system"))).To(Succeed())
		var names []string
		rules := map[string][]rbacv1.PolicyRule{
			"controller": append(getClusterRole(ctx, "berth-controller").Rules, getClusterRole(ctx, "berth-controller-sandbox-pods").Rules...),
			"gateway":    getClusterRole(ctx, "berth-gateway").Rules,
		}
		for _, role := range roles.Items {
			names = append(names, role.Name)
			component := role.Name[len("berth-"):]
			rules[component] = append(rules[component], role.Rules...)
		}
		Expect(names).To(ConsistOf("berth-controller", "berth-gateway"))
		for component, list := range rules {
			for _, rule := range list {
				Expect(slices.Concat(rule.Verbs, rule.APIGroups, rule.Resources)).NotTo(ContainElement("*"), component)
				if component != "gateway" {
					continue
				}
				Expect(rule.Resources).NotTo(ContainElement(HavePrefix("pods")))
				if slices.Contains(rule.Resources, "secrets") {
					Expect(rule.ResourceNames).To(ConsistOf("berth-signing-key"))
				}
			}
		}
	})

	It("let the gateway read its key and no other Secret, anywhere", func(ctx SpecContext) {
		gateway := as("system:serviceaccount:berth-system:berth-gateway")
		Expect(may(ctx, gateway.name, "berth-system", "list", "", "secrets")).To(BeFalse())
		Expect(may(ctx, gateway.name, "sandboxes", "get", "", "secrets")).To(BeFalse())
		Expect(may(ctx, gateway.name, "sandboxes", "get", "", "pods")).To(BeFalse())
		Expect(may(ctx, gateway.name, "sandboxes", "create", "", "pods")).To(BeFalse())
	})
})

func getClusterRole(ctx context.Context, name string) *rbacv1.ClusterRole {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{}
	Expect(admin.Get(ctx, client.ObjectKey{Name: name}, role)).To(Succeed())
	return role
}
