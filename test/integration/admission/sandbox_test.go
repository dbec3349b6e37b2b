package admission_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
)

// accepted, where a table gives words of a refusal, says that there is none.
const accepted = ""

// outcome matches a refusal with these words, or success.
func outcome(words string) types.GomegaMatcher {
	if words == accepted {
		return Succeed()
	}
	return BeInvalid(words)
}

var _ = Describe("A Sandbox", func() {
	DescribeTable("is named like a session ID",
		func(ctx SpecContext, name, refused string) {
			sandbox := newSandbox("sandboxes", func(s *v1alpha1.Sandbox) { s.Name = name })
			Expect(admin.Create(ctx, sandbox, client.DryRunAll)).To(outcome(refused))
		},
		Entry("one character", "a", accepted),
		Entry("letters, digits, hyphens", "0-session-9", accepted),
		Entry("63 characters", strings.Repeat("a", 63), accepted),
		Entry("64 characters", strings.Repeat("a", 64), "at most 63"),
		Entry("a dot", "a.b", "metadata.name is the session ID"),
		Entry("an upper-case letter", "A", "metadata.name"),
		Entry("an underscore", "a_b", "metadata.name"),
		Entry("a hyphen at the end", "a-", "metadata.name"),
		Entry("a hyphen at the beginning", "-a", "metadata.name"),
	)

	DescribeTable("takes durations that Go parses and that are positive",
		func(ctx SpecContext, duration, refused string) {
			if refused == accepted {
				_, err := v1alpha1.Duration(duration).Parse()
				Expect(err).NotTo(HaveOccurred(), "the API server must not take what we can't parse")
			}
			for _, field := range []string{"maxLifetime", "startDeadline"} {
				sandbox := sandboxWith(map[string]any{field: duration})
				Expect(admin.Create(ctx, sandbox, client.DryRunAll)).To(outcome(refused), field)
			}
		},
		Entry("seconds", "90s", accepted),
		Entry("several units", "1h30m", accepted),
		Entry("a fraction", "0.5h", accepted),
		Entry("milliseconds", "100ms", accepted),
		Entry("microseconds", "1us", accepted),
		Entry("the shortest", "1ns", accepted),
		Entry("32 characters", strings.Repeat("0", 30)+"9m", accepted),
		Entry("33 characters", strings.Repeat("0", 31)+"9m", "may not be more than 32"),
		Entry("the longest that there is", "2562047h", accepted),
		Entry("longer than there is", "2562048h", "spec."),
		Entry("no duration", "banana", "must be a positive duration"),
		Entry("empty", "", "at least 2 chars long"),
		Entry("no unit", "30", "must be a positive duration"),
		Entry("zero", "0s", "must be a positive duration"),
		Entry("negative", "-5m", "must be a positive duration"),
		Entry("signed", "+5m", "must be a positive duration"),
		Entry("days", "1d", "must be a positive duration"),
		Entry("a blank inside", "1h 30m", "must be a positive duration"),
		Entry("a blank after", "30m ", "must be a positive duration"),
		Entry("a line break after", "30m\n", "must be a positive duration"),
	)

	DescribeTable("takes environments of shell identifiers",
		func(ctx SpecContext, env []v1alpha1.EnvVar, refused string) {
			sandbox := newSandbox("sandboxes", func(s *v1alpha1.Sandbox) { s.Spec.Env = env })
			Expect(admin.Create(ctx, sandbox, client.DryRunAll)).To(outcome(refused))
		},
		Entry("a name", variables("PATH"), accepted),
		Entry("an underscore first", variables("_x9"), accepted),
		Entry("BERTH without underscore", variables("BERTH"), accepted),
		Entry("BERTH_ is the agent's", variables("BERTH_X"), "must not begin with BERTH_"),
		Entry("BERTH_ alone", variables("BERTH_"), "must not begin with BERTH_"),
		Entry("a digit first", variables("9A"), "must be a shell identifier"),
		Entry("a hyphen", variables("A-B"), "must be a shell identifier"),
		Entry("an equals sign", variables("A=B"), "must be a shell identifier"),
		Entry("a line break after", variables("A\n"), "must be a shell identifier"),
		Entry("no name", []v1alpha1.EnvVar{{Value: ptr.To("x")}}, "env[0].name"),
		Entry("a name of 256", variables(strings.Repeat("A", 256)), accepted),
		Entry("a name of 257", variables(strings.Repeat("A", 257)), "may not be more than 256"),
		Entry("a name twice", variables("A", "A"), "Duplicate value"),
		Entry("100 variables", variables(numbered(100)...), accepted),
		Entry("101 variables", variables(numbered(101)...), "must have at most 100 items"),
		Entry("an empty value", []v1alpha1.EnvVar{{Name: "A", Value: ptr.To("")}}, accepted),
		Entry("a value of 32768", []v1alpha1.EnvVar{{Name: "A", Value: ptr.To(strings.Repeat("x", 32768))}}, accepted),
		Entry("a value of 32769", []v1alpha1.EnvVar{{Name: "A", Value: ptr.To(strings.Repeat("x", 32769))}}, "may not be more than 32768"),
	)

	DescribeTable("has a spec of these shapes",
		func(ctx SpecContext, spec map[string]any, refused string) {
			Expect(admin.Create(ctx, sandboxWith(spec), client.DryRunAll)).To(outcome(refused))
		},
		Entry("an empty one", map[string]any{}, accepted),
		Entry("suspended", map[string]any{"operatingMode": "Suspended"}, accepted),
		Entry("another mode", map[string]any{"operatingMode": "Paused"}, "Unsupported value"),
		Entry("a template's name", map[string]any{"templateRef": map[string]any{"name": "python-3"}}, accepted),
		Entry("a template's name of 63", map[string]any{"templateRef": map[string]any{"name": strings.Repeat("a", 63)}}, accepted),
		Entry("a template's name of 64", map[string]any{"templateRef": map[string]any{"name": strings.Repeat("a", 64)}}, "may not be more than 63"),
		Entry("a template's name that is no label", map[string]any{"templateRef": map[string]any{"name": "a.b"}}, "must be a DNS-1123 label"),
		Entry("a template without a name", map[string]any{"templateRef": map[string]any{}}, "templateRef.name: Required value"),
		Entry("an owner of 1024", map[string]any{"owner": strings.Repeat("o", 1024)}, accepted),
		Entry("an owner of 1025", map[string]any{"owner": strings.Repeat("o", 1025)}, "may not be more than 1024"),
		Entry("an empty owner", map[string]any{"owner": ""}, "at least 1 chars long"),
		Entry("an empty list of variables", map[string]any{"env": []any{}}, "at least 1 items"),
		Entry("resources", map[string]any{"resources": map[string]any{"limits": map[string]any{"cpu": "1"}}}, accepted),
		Entry("resources that are no quantity", map[string]any{"resources": map[string]any{"limits": map[string]any{"cpu": "one"}}}, "spec.resources.limits.cpu"),
		Entry("no resources", map[string]any{"resources": map[string]any{}}, "at least 1 propert"),
	)

	It("gets defaults: template, mode, and a status that says nothing was observed", func(ctx SpecContext) {
		sandbox := newSandbox(newNamespace(ctx))
		Expect(admin.Create(ctx, sandbox)).To(Succeed())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(sandbox), sandbox)).To(Succeed())
		Expect(sandbox.Spec.TemplateRef.Name).To(Equal(v1alpha1.DefaultTemplateName))
		Expect(sandbox.Spec.OperatingMode).To(Equal(v1alpha1.OperatingModeRunning))
		Expect(sandbox.Status.ObservedGeneration).To(HaveValue(BeEquivalentTo(-1)))
	})

	DescribeTable("may be edited but in what a session is",
		func(ctx SpecContext, edit func(*v1alpha1.SandboxSpec), refused string) {
			sandbox := newSandbox(newNamespace(ctx), func(s *v1alpha1.Sandbox) { s.Spec.Owner = "owner" })
			Expect(admin.Create(ctx, sandbox)).To(Succeed())
			edit(&sandbox.Spec)
			Expect(admin.Update(ctx, sandbox)).To(outcome(refused))
		},
		Entry("mode", func(s *v1alpha1.SandboxSpec) { s.OperatingMode = v1alpha1.OperatingModeSuspended }, accepted),
		Entry("lifetime", func(s *v1alpha1.SandboxSpec) { s.MaxLifetime = ptr.To(v1alpha1.Duration("1h")) }, accepted),
		Entry("environment", func(s *v1alpha1.SandboxSpec) { s.Env = variables("A") }, accepted),
		Entry("resources", func(s *v1alpha1.SandboxSpec) {
			s.Resources = &v1alpha1.Resources{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
		}, accepted),
		Entry("not its template", func(s *v1alpha1.SandboxSpec) { s.TemplateRef.Name = "other" }, "templateRef is immutable"),
		Entry("not its owner", func(s *v1alpha1.SandboxSpec) { s.Owner = "other" }, "owner is immutable"),
		Entry("not away from its owner", func(s *v1alpha1.SandboxSpec) { s.Owner = "" }, "owner is immutable"),
		Entry("not all at once, by an empty spec", func(s *v1alpha1.SandboxSpec) { *s = v1alpha1.SandboxSpec{} }, "owner is immutable"),
	)

	It("gets no owner later", func(ctx SpecContext) {
		sandbox := newSandbox(newNamespace(ctx))
		Expect(admin.Create(ctx, sandbox)).To(Succeed())
		sandbox.Spec.Owner = "late"
		Expect(admin.Update(ctx, sandbox)).To(BeInvalid("owner is immutable"))
	})

	DescribeTable("has a status within bounds",
		func(ctx SpecContext, status v1alpha1.SandboxStatus, refused string) {
			sandbox := newSandbox(newNamespace(ctx))
			Expect(admin.Create(ctx, sandbox)).To(Succeed())
			sandbox.Status = status
			Expect(admin.Status().Update(ctx, sandbox)).To(outcome(refused))
		},
		Entry("nothing observed", v1alpha1.SandboxStatus{ObservedGeneration: ptr.To[int64](-1)}, accepted),
		Entry("less than nothing", v1alpha1.SandboxStatus{ObservedGeneration: ptr.To[int64](-2)}, "observedGeneration"),
		Entry("a first pod", v1alpha1.SandboxStatus{PodGeneration: ptr.To[int64](1)}, accepted),
		Entry("a pod before the first", v1alpha1.SandboxStatus{PodGeneration: ptr.To[int64](0)}, "podGeneration"),
		Entry("a cold start", v1alpha1.SandboxStatus{Start: v1alpha1.StartCold}, accepted),
		Entry("another start", v1alpha1.SandboxStatus{Start: "Lukewarm"}, "Unsupported value"),
		Entry("a termination", v1alpha1.SandboxStatus{LastTermination: &v1alpha1.Termination{Reason: "Evicted", Time: metav1.Now()}}, accepted),
		Entry("a termination without a time", v1alpha1.SandboxStatus{LastTermination: &v1alpha1.Termination{Reason: "Evicted"}}, "lastTermination.time"),
	)
})

// sandboxWith gives a Sandbox with a spec that the Go type may not be able to say.
func sandboxWith(spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "berth.dev/v1alpha1", "kind": "Sandbox",
		"metadata": map[string]any{"namespace": "sandboxes", "name": "session"},
		"spec":     spec,
	}}
}

func variables(names ...string) []v1alpha1.EnvVar {
	var env []v1alpha1.EnvVar
	for _, name := range names {
		env = append(env, v1alpha1.EnvVar{Name: name})
	}
	return env
}

func numbered(count int) []string {
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("V%d", i))
	}
	return names
}
