package admission_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
)

var _ = Describe("A SandboxTemplate", func() {
	DescribeTable("is named like a label",
		func(ctx SpecContext, name, refused string) {
			template := newTemplate("sandboxes", func(t *v1alpha1.SandboxTemplate) { t.Name = name })
			Expect(admin.Create(ctx, template, client.DryRunAll)).To(outcome(refused))
		},
		Entry("63 characters", strings.Repeat("a", 63), accepted),
		Entry("64 characters", strings.Repeat("a", 64), "at most 63"),
		Entry("a dot", "a.b", "metadata.name must be at most 63"),
	)

	DescribeTable("has a spec of these shapes",
		func(ctx SpecContext, spec map[string]any, refused string) {
			Expect(admin.Create(ctx, templateWith(spec), client.DryRunAll)).To(outcome(refused))
		},
		Entry("a pod", map[string]any{}, accepted),
		Entry("no pod", map[string]any{"podTemplate": nil}, "spec.podTemplate: Required value"),
		Entry("a workspace", map[string]any{"workspace": map[string]any{"emptyDir": map[string]any{"sizeLimit": "1Gi"}}}, accepted),
		Entry("a workspace of no kind", map[string]any{"workspace": map[string]any{}}, "at least 1 propert"),
		Entry("an emptyDir that says nothing", map[string]any{"workspace": map[string]any{"emptyDir": map[string]any{}}}, "at least 1 propert"),
		Entry("lifecycle", map[string]any{"lifecycle": map[string]any{"maxLifetime": "8h"}}, accepted),
		Entry("a lifecycle that says nothing", map[string]any{"lifecycle": map[string]any{}}, "at least 1 propert"),
		Entry("a lifetime that is none", map[string]any{"lifecycle": map[string]any{"maxLifetime": "banana"}}, "must be a positive duration"),
		Entry("a deadline that is none", map[string]any{"lifecycle": map[string]any{"startDeadline": "0s"}}, "must be a positive duration"),
		Entry("background processes as activity", map[string]any{"lifecycle": map[string]any{"backgroundIsActivity": true}}, accepted),
		Entry("background processes as activity, in other words", map[string]any{"lifecycle": map[string]any{"backgroundIsActivity": "yes"}}, "must be of type boolean"),
		Entry("no egress", map[string]any{"network": map[string]any{"egress": "None"}}, accepted),
		Entry("egress to the cluster's DNS", map[string]any{"network": map[string]any{"egress": "ClusterDNS"}}, accepted),
		Entry("egress to the internet", map[string]any{"network": map[string]any{"egress": "Internet"}}, accepted),
		Entry("egress to all", map[string]any{"network": map[string]any{"egress": "All"}}, "Unsupported value"),
		Entry("50 rules", map[string]any{"network": map[string]any{"egressRules": rules(50)}}, accepted),
		Entry("51 rules", map[string]any{"network": map[string]any{"egressRules": rules(51)}}, "must have at most 50 items"),
		Entry("an empty list of rules", map[string]any{"network": map[string]any{"egressRules": rules(0)}}, "at least 1 items"),
		Entry("limits that say nothing", map[string]any{"limits": map[string]any{}}, "at least 1 propert"),
		Entry("a time-out below the longest", limits("commandTimeout", "1m", "maxCommandTimeout", "2m"), accepted),
		Entry("a time-out equal to the longest", limits("commandTimeout", "60s", "maxCommandTimeout", "1m"), accepted),
		Entry("a time-out above the longest", limits("commandTimeout", "61s", "maxCommandTimeout", "1m"), "commandTimeout must not exceed maxCommandTimeout"),
		Entry("a time-out alone", limits("commandTimeout", "1h"), accepted),
		Entry("a longest time-out alone", limits("maxCommandTimeout", "1h"), accepted),
		Entry("a time-out that is none", limits("commandTimeout", "soon"), "must be a positive duration"),
		Entry("the least output", limits("outputBytes", int64(1024)), accepted),
		Entry("less output", limits("outputBytes", int64(1023)), "greater than or equal to 1024"),
		Entry("the most output", limits("outputBytes", int64(4194304)), accepted),
		Entry("more output", limits("outputBytes", int64(4194305)), "less than or equal to 4194304"),
		Entry("the smallest artifacts", limits("artifactBytes", int64(1)), accepted),
		Entry("no artifacts", limits("artifactBytes", int64(0)), "greater than or equal to 1"),
		Entry("the largest artifacts", limits("artifactBytes", int64(1)<<40), accepted),
		Entry("larger artifacts", limits("artifactBytes", int64(1)<<40+1), "less than or equal to 1099511627776"),
		Entry("the least room for artifacts", limits("artifactTotalBytes", int64(1)), accepted),
		Entry("no room for artifacts", limits("artifactTotalBytes", int64(0)), "greater than or equal to 1"),
		Entry("the most room for artifacts", limits("artifactTotalBytes", int64(1)<<40), accepted),
		Entry("more room for artifacts", limits("artifactTotalBytes", int64(1)<<40+1), "less than or equal to 1099511627776"),
		Entry("the smallest logs", limits("logBytes", int64(1)), accepted),
		Entry("no logs", limits("logBytes", int64(0)), "greater than or equal to 1"),
		Entry("the largest logs", limits("logBytes", int64(1)<<40), accepted),
		Entry("larger logs", limits("logBytes", int64(1)<<40+1), "less than or equal to 1099511627776"),
		Entry("the smallest uploads", limits("uploadBytes", int64(1)), accepted),
		Entry("no uploads", limits("uploadBytes", int64(0)), "greater than or equal to 1"),
		Entry("the largest uploads", limits("uploadBytes", int64(1)<<40), accepted),
		Entry("larger uploads", limits("uploadBytes", int64(1)<<40+1), "less than or equal to 1099511627776"),
	)

	DescribeTable("lets file tools reach directories by paths of one form",
		func(ctx SpecContext, roots []any, refused string) {
			spec := map[string]any{"files": map[string]any{"roots": roots}}
			Expect(admin.Create(ctx, templateWith(spec), client.DryRunAll)).To(outcome(refused))
		},
		Entry("one", []any{"/data"}, accepted),
		Entry("all", []any{"/"}, accepted),
		Entry("deep, with dots, spaces and any script", []any{"/srv/..data/v1.2/...", "/a b", "/данные", "/.x"}, accepted),
		Entry("none", []any{}, "at least 1 items"),
		Entry("8", fileRoots(8), accepted),
		Entry("9", fileRoots(9), "must have at most 8 items"),
		Entry("twice the same", []any{"/data", "/data"}, "Duplicate value"),
		Entry("256 characters", []any{"/" + strings.Repeat("a", 255)}, accepted),
		Entry("257 characters", []any{"/" + strings.Repeat("a", 256)}, "may not be more than 256"),
		Entry("no characters", []any{""}, "at least 1 chars"),
		Entry("relative", []any{"data"}, "must be an absolute path"),
		Entry("of a home", []any{"~/data"}, "must be an absolute path"),
		Entry("a parent at the end", []any{"/data/.."}, "without . or .."),
		Entry("a parent at the start", []any{"/../data"}, "without . or .."),
		Entry("a parent within", []any{"/a/../b"}, "without . or .."),
		Entry("a dot at the end", []any{"/data/."}, "without . or .."),
		Entry("a dot within", []any{"/a/./b"}, "without . or .."),
		Entry("a double slash", []any{"/a//b"}, "double or trailing"),
		Entry("two slashes alone", []any{"//"}, "double or trailing"),
		Entry("a trailing slash", []any{"/data/"}, "double or trailing"),
		Entry("a newline", []any{"/a\nb"}, "control characters"),
		Entry("a NUL", []any{"/a\x00b"}, "control characters"),
		Entry("no text", []any{int64(1)}, "must be of type string"),
	)

	It("has files of some shape", func(ctx SpecContext) {
		Expect(admin.Create(ctx, templateWith(map[string]any{"files": map[string]any{}}), client.DryRunAll)).To(outcome("at least 1 propert"))
	})

	DescribeTable("names an artifact store by a DNS label",
		func(ctx SpecContext, store any, refused string) {
			spec := map[string]any{"artifacts": map[string]any{"store": store}}
			Expect(admin.Create(ctx, templateWith(spec), client.DryRunAll)).To(outcome(refused))
		},
		Entry("a name", "archive-2", accepted),
		Entry("of 63 characters", strings.Repeat("a", 63), accepted),
		Entry("of 64 characters", strings.Repeat("a", 64), "may not be more than 63"),
		Entry("of none", "", "at least 1 chars"),
		Entry("with a capital", "Archive", "beginning and ending with a letter or digit"),
		Entry("with a dot", "a.b", "beginning and ending with a letter or digit"),
		Entry("that begins with -", "-a", "beginning and ending with a letter or digit"),
		Entry("that ends with -", "a-", "beginning and ending with a letter or digit"),
		Entry("of a URL", "https://bucket", "beginning and ending with a letter or digit"),
		Entry("with a newline", "a\n", "beginning and ending with a letter or digit"),
		Entry("no text", int64(1), "must be of type string"),
	)

	It("says something where it has artifacts", func(ctx SpecContext) {
		Expect(admin.Create(ctx, templateWith(map[string]any{"artifacts": map[string]any{}}), client.DryRunAll)).To(outcome("at least 1 propert"))
	})

	It("lets nothing out where its network says nothing", func(ctx SpecContext) {
		template := templateWith(map[string]any{"network": map[string]any{}})
		Expect(admin.Create(ctx, template, client.DryRunAll)).To(Succeed())
		egress, _, err := unstructured.NestedString(template.Object, "spec", "network", "egress")
		Expect(err).NotTo(HaveOccurred())
		Expect(egress).To(BeEquivalentTo(v1alpha1.EgressNone))
	})

	It("keeps labels and annotations of its pods", func(ctx SpecContext) {
		template := newTemplate(newNamespace(ctx), func(t *v1alpha1.SandboxTemplate) {
			t.Spec.PodTemplate.Labels = map[string]string{"team": "research"}
			t.Spec.PodTemplate.Annotations = map[string]string{"note": "kept"}
		})
		Expect(admin.Create(ctx, template)).To(Succeed())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(template), template)).To(Succeed())
		Expect(template.Spec.PodTemplate.Labels).To(HaveKeyWithValue("team", "research"))
		Expect(template.Spec.PodTemplate.Annotations).To(HaveKeyWithValue("note", "kept"))
	})
})

// templateWith gives a template with a pod, and with these fields of the spec;
// nil takes a field away.
func templateWith(fields map[string]any) *unstructured.Unstructured {
	spec := map[string]any{"podTemplate": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "sandbox", "image": "image"}},
	}}}
	for name, value := range fields {
		spec[name] = value
		if value == nil {
			delete(spec, name)
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "berth.dev/v1alpha1", "kind": "SandboxTemplate",
		"metadata": map[string]any{"namespace": "sandboxes", "name": "template"},
		"spec":     spec,
	}}
}

func limits(pairs ...any) map[string]any {
	fields := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		fields[pairs[i].(string)] = pairs[i+1]
	}
	return map[string]any{"limits": fields}
}

func rules(count int) []any {
	list := []any{}
	for range count {
		list = append(list, map[string]any{"ports": []any{map[string]any{"protocol": "TCP", "port": int64(443)}}})
	}
	return list
}

// fileRoots gives n directories.
func fileRoots(n int) []any {
	var roots []any
	for i := range n {
		roots = append(roots, fmt.Sprintf("/data%d", i))
	}
	return roots
}
