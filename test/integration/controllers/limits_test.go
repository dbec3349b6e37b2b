package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/builders"
)

var _ = Describe("What is in force for a session", func() {
	It("is in its status, and stays as it was at the pod's birth", func(ctx SpecContext) {
		h := bareHarness(ctx, newNamespace(ctx), interceptor.Funcs{})
		template := builders.MakeTemplate("default", h.namespace).BackgroundIsActivity().FileRoots("/data").ArtifactStore("archive").Spec(func(s *v1alpha1.SandboxTemplateSpec) {
			s.Workspace = &v1alpha1.Workspace{EmptyDir: &v1alpha1.EmptyDirWorkspace{SizeLimit: ptr.To(resource.MustParse("1Gi"))}}
		}).Obj()
		Expect(admin.Create(ctx, template)).To(Succeed())
		born := h.ready(ctx, h.make("session")).Status
		Expect(born.Limits.LogBytes).To(HaveValue(BeEquivalentTo(256<<20)), "a quarter of the workspace")
		Expect(born.BackgroundIsActivity).To(HaveValue(BeTrue()))
		Expect(born.FileRoots).To(HaveExactElements(v1alpha1.FileRoot("/data")))
		Expect(born.ArtifactStore).To(BeEquivalentTo("archive"))

		by := client.MergeFrom(template.DeepCopy())
		Expect(born.Limits.UploadBytes).To(BeNil(), "no limit")
		template.Spec.Limits = &v1alpha1.Limits{LogBytes: ptr.To[int64](1 << 20), UploadBytes: ptr.To[int64](1 << 30)}
		template.Spec.Lifecycle = nil
		template.Spec.Artifacts = nil
		template.Spec.Files = &v1alpha1.Files{Roots: []v1alpha1.FileRoot{"/srv", "/"}}
		Expect(admin.Patch(ctx, template, by)).To(Succeed())
		after, _ := h.settle(ctx, "session")
		Expect(after.Status.Limits).To(Equal(born.Limits))
		Expect(after.Status.BackgroundIsActivity).To(HaveValue(BeTrue()))
		Expect(after.Status.FileRoots).To(HaveExactElements(v1alpha1.FileRoot("/data")))
		Expect(after.Status.ArtifactStore).To(BeEquivalentTo("archive"))

		next := h.ready(ctx, h.make("later")).Status
		Expect(next.Limits.LogBytes).To(HaveValue(BeEquivalentTo(1 << 20)))
		Expect(next.Limits.UploadBytes).To(HaveValue(BeEquivalentTo(1 << 30)))
		Expect(next.BackgroundIsActivity).To(HaveValue(BeFalse()))
		Expect(next.FileRoots).To(HaveExactElements(v1alpha1.FileRoot("/srv"), v1alpha1.FileRoot("/")))
		Expect(next.ArtifactStore).To(BeEmpty())
	})

	It("is written for the smallest workspace too", func(ctx SpecContext) {
		h := bareHarness(ctx, newNamespace(ctx), interceptor.Funcs{})
		Expect(admin.Create(ctx, builders.MakeTemplate("default", h.namespace).Spec(func(s *v1alpha1.SandboxTemplateSpec) {
			s.Workspace = &v1alpha1.Workspace{EmptyDir: &v1alpha1.EmptyDirWorkspace{SizeLimit: ptr.To(resource.MustParse("1"))}}
		}).Obj())).To(Succeed())
		Expect(h.ready(ctx, h.make("session")).Status.Limits.LogBytes).To(HaveValue(BeEquivalentTo(1)))
	})
})
