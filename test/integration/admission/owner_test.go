package admission_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
)

var _ = Describe("The owner of a Sandbox", func() {
	owned := func(namespace, owner string) *v1alpha1.Sandbox {
		return newSandbox(namespace, func(s *v1alpha1.Sandbox) { s.Spec.Owner = owner })
	}

	It("may be left out by whoever may create Sandboxes", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		Expect(newUser(ctx, namespace, allow("create", "berth.dev", "sandboxes")).Create(ctx, owned(namespace, ""))).To(Succeed())
	})

	It("may be oneself", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		self := newUser(ctx, namespace, allow("create", "berth.dev", "sandboxes"))
		Expect(self.Create(ctx, owned(namespace, self.name))).To(Succeed())
	})

	It("may not be another, so that no one occupies a victim's session ID in his name", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		attacker := newUser(ctx, namespace, allow("create", "berth.dev", "sandboxes"))
		err := attacker.Create(ctx, owned(namespace, "victim"))
		Expect(err).To(BeForbidden())
		Expect(err).To(MatchError(ContainSubstring("needs the verb assign on sandboxes/owner")))
	})

	It("may not be another by server-side apply either", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		attacker := newUser(ctx, namespace, allow("create", "berth.dev", "sandboxes"), allow("patch", "berth.dev", "sandboxes"))
		sandbox := sandboxWith(map[string]any{"owner": "victim"})
		sandbox.SetNamespace(namespace)
		Expect(attacker.Apply(ctx, client.ApplyConfigurationFromUnstructured(sandbox), client.FieldOwner("spec"))).To(BeForbidden())
	})

	It("may be another for whoever has assign in that namespace, and in that one only", func(ctx SpecContext) {
		namespace, other := newNamespace(ctx), newNamespace(ctx)
		assigner := newUser(ctx, namespace, allow("create", "berth.dev", "sandboxes"), allow("assign", "berth.dev", "sandboxes/owner"))
		bind(ctx, other, assigner.name, clusterRole("berth-edit"), nil)
		Eventually(func() bool { return may(ctx, assigner.name, other, "create", "berth.dev", "sandboxes") }).
			WithTimeout(effective).Should(BeTrue())

		Expect(assigner.Create(ctx, owned(namespace, "caller"))).To(Succeed())
		Expect(assigner.Create(ctx, owned(other, "caller"))).To(BeForbidden())
	})

	It("is assigned by the gateway and by no shipped role", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		gateway := as("system:serviceaccount:berth-system:berth-gateway")
		Expect(gateway.Create(ctx, owned(namespace, "caller"))).To(Succeed())
		for _, role := range []string{"berth-view", "berth-edit", "berth-admin", "berth-caller"} {
			holder := newUserWithRole(ctx, namespace, role)
			Expect(may(ctx, holder.name, namespace, "assign", "berth.dev", "sandboxes/owner")).To(BeFalse(), role)
		}
		Expect(may(ctx, "system:serviceaccount:berth-system:berth-controller", namespace, "assign", "berth.dev", "sandboxes/owner")).To(BeFalse())
	})
})
