package admission_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/integration/apiserver"
)

var _ = Describe("The manifests", func() {
	It("of config/default apply again without a change", func(ctx SpecContext) {
		installed, err := apiserver.Render(ctx, "config/default")
		Expect(err).NotTo(HaveOccurred())
		Expect(apiserver.Apply(ctx, admin, installed)).To(Succeed())
	})

	It("of config/default bring kinds and namespaces before what needs them", func(ctx SpecContext) {
		installed, err := apiserver.Render(ctx, "config/default")
		Expect(err).NotTo(HaveOccurred())
		namespaces := map[string]bool{"": true}
		kinds := map[string]bool{}
		for _, object := range installed {
			switch object.GetKind() {
			case "Namespace":
				namespaces[object.GetName()] = true
			case "CustomResourceDefinition":
				kind, _, err := unstructured.NestedString(object.Object, "spec", "names", "kind")
				Expect(err).NotTo(HaveOccurred())
				kinds[kind] = true
			}
			Expect(namespaces).To(HaveKey(object.GetNamespace()), "%s %s", object.GetKind(), object.GetName())
			if object.GroupVersionKind().Group == v1alpha1.GroupVersion.Group {
				Expect(kinds).To(HaveKey(object.GetKind()), object.GetName())
			}
		}
	})

	It("of each kustomization render, optional ones too", func(ctx SpecContext) {
		files, err := filepath.Glob(filepath.Join(apiserver.Root, "config", "*", "kustomization.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(ContainElement(ContainSubstring("prometheus")))
		for _, file := range files {
			dir := filepath.Join("config", filepath.Base(filepath.Dir(file)))
			content, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			if strings.Contains(string(content), "\nkind: Component\n") {
				dir = withDefault(dir)
			}
			objects, err := apiserver.Render(ctx, dir)
			Expect(err).NotTo(HaveOccurred())
			Expect(objects).NotTo(BeEmpty(), file)
		}
	})

	It("of config/samples apply, each file by itself", func(ctx SpecContext) {
		files, err := filepath.Glob(filepath.Join(apiserver.Root, "config", "samples", "*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(files).NotTo(BeEmpty())
		for _, file := range files {
			relative, err := filepath.Rel(apiserver.Root, file)
			Expect(err).NotTo(HaveOccurred())
			objects, err := apiserver.Read(relative)
			Expect(err).NotTo(HaveOccurred())
			Expect(objects).NotTo(BeEmpty(), relative)
			Expect(apiserver.Apply(ctx, admin, objects, client.DryRunAll)).To(Succeed(), relative)
			Expect(apiserver.Apply(ctx, admin, objects)).To(Succeed(), relative)
		}
	})

	It("leave each CRD small enough for the annotation of a client-side apply", func() {
		files, err := filepath.Glob(filepath.Join(apiserver.Root, "config", "crd", "berth.dev_*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(2))
		for _, file := range files {
			objects, err := apiserver.Read("config/crd/" + filepath.Base(file))
			Expect(err).NotTo(HaveOccurred())
			for _, object := range objects {
				encoded, err := json.Marshal(object)
				Expect(err).NotTo(HaveOccurred())
				// All annotations together: 256 KiB.
				Expect(len(encoded)).To(BeNumerically("<", 256*1024), file)
			}
		}
	})

	It("keep what kubectl explain says of our fields, and drop what a pod's say", func() {
		for path, want := range map[string]bool{
			"spec.podTemplate":           true,
			"spec.workspace.emptyDir":    true,
			"spec.network.egressRules":   true,
			"spec.podTemplate.spec":      false,
			"spec.limits.commandTimeout": true,
		} {
			Expect(describes("config/crd/berth.dev_sandboxtemplates.yaml", path)).To(Equal(want), path)
		}
	})

	It("run Berth's own components in pods that pass the namespace's restricted standard", func(ctx SpecContext) {
		for _, name := range []string{"berth-controller", "berth-gateway"} {
			deployment := &appsv1.Deployment{}
			Expect(admin.Get(ctx, client.ObjectKey{Namespace: "berth-system", Name: name}, deployment)).To(Succeed())
			Expect(*deployment.Spec.Replicas).To(BeEquivalentTo(2), name)
			pod := &corev1.Pod{ObjectMeta: deployment.Spec.Template.ObjectMeta, Spec: deployment.Spec.Template.Spec}
			pod.Namespace, pod.Name = "berth-system", name
			Expect(admin.Create(ctx, pod, client.DryRunAll)).To(Succeed(), name)
		}
		lax := newPod("berth-system", nil)
		Expect(admin.Create(ctx, lax, client.DryRunAll)).To(BeForbidden(), "the namespace must enforce it")
		lax.Namespace = "sandboxes"
		Expect(admin.Create(ctx, lax, client.DryRunAll)).To(BeForbidden(), "the namespace must enforce it")
	})
})

// describes says whether a field of a CRD, such as spec.limits, has a description.
func describes(file, path string) bool {
	GinkgoHelper()
	objects, err := apiserver.Read(file)
	Expect(err).NotTo(HaveOccurred())
	versions, _, err := unstructured.NestedSlice(objects[0].Object, "spec", "versions")
	Expect(err).NotTo(HaveOccurred())
	node := versions[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	for field := range strings.SplitSeq(path, ".") {
		node = node["properties"].(map[string]any)[field].(map[string]any)
	}
	_, found := node["description"].(string)
	return found
}

// withDefault makes an overlay of config/default with a component, as an administrator
// does, and gives its path relative to the checkout.
func withDefault(component string) string {
	overlay := GinkgoT().TempDir()
	up, err := filepath.Rel(overlay, apiserver.Root)
	Expect(err).NotTo(HaveOccurred())
	kustomization := fmt.Sprintf("resources: [%s]\ncomponents: [%s]\n", filepath.Join(up, "config", "default"), filepath.Join(up, component))
	Expect(os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(kustomization), 0o600)).To(Succeed())
	relative, err := filepath.Rel(apiserver.Root, overlay)
	Expect(err).NotTo(HaveOccurred())
	return relative
}
