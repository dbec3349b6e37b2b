package pod_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers/sandbox/pod"
	"github.com/berth-dev/berth/test/builders"
)

var update = flag.Bool("update", false, "write the golden files")

var (
	imageVolume   = pod.Options{AgentImage: "registry.example/agent:1", Injection: pod.ImageVolume, HostUsers: true}
	initContainer = pod.Options{AgentImage: "registry.example/agent:1", Injection: pod.InitContainer, HostUsers: true}
	userNamespace = pod.Options{AgentImage: "registry.example/agent:1", Injection: pod.ImageVolume, HostUsers: false}
	keys          = pod.Keys{NewestID: "key-0002", PublicJWKS: `{"keys":[]}`}
)

type shape struct {
	sandbox  *builders.Sandbox
	template *builders.Template
	options  pod.Options
}

// shapes are the kinds of pod that Berth makes.
func shapes() map[string]shape {
	sandbox := func() *builders.Sandbox {
		return builders.MakeSandbox("s", "team").Stored("11111111-2222-3333-4444-555555555555", time.Unix(0, 0))
	}
	template := func() *builders.Template { return builders.MakeTemplate("default", "team") }
	return map[string]shape{
		"default":        {sandbox(), template(), imageVolume},
		"init-container": {sandbox(), template(), initContainer},
		"user-namespace": {sandbox(), template().Pod(func(p *corev1.PodTemplateSpec) { p.Spec.HostUsers = ptr.To(true) }), userNamespace},
		"runtime-class": {sandbox(), template().Pod(func(p *corev1.PodTemplateSpec) {
			p.Spec.RuntimeClassName = ptr.To("gvisor")
		}), userNamespace},
		"env-stays-out":     {sandbox().Env("SECRET", "not in the pod"), template(), imageVolume},
		"sandbox-resources": {sandbox().Limit(corev1.ResourceMemory, "64Mi").Limit(corev1.ResourceCPU, "4"), template(), imageVolume},
		"internet-workspace": {sandbox(), template().Egress(v1alpha1.EgressInternet).Spec(func(s *v1alpha1.SandboxTemplateSpec) {
			s.Workspace = &v1alpha1.Workspace{EmptyDir: &v1alpha1.EmptyDirWorkspace{SizeLimit: ptr.To(resource.MustParse("5Gi"))}}
		}), imageVolume},
		"sidecar": {sandbox(), template().Pod(func(p *corev1.PodTemplateSpec) {
			p.Labels = map[string]string{"team": "blue"}
			p.Annotations = map[string]string{"example.com/note": "kept"}
			p.Spec.InitContainers = []corev1.Container{{Name: "prepare", Image: "registry.example/prepare:1"}}
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
				Name: "proxy", Image: "registry.example/proxy:1", Command: []string{"/proxy"},
				VolumeMounts: []corev1.VolumeMount{{Name: "workspace", MountPath: "/work", ReadOnly: true}},
			})
		}), initContainer},
		"spoken-template": {sandbox(), template().Pod(func(p *corev1.PodTemplateSpec) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](4242), FSGroup: ptr.To[int64](4343)}
			p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](30)
			p.Spec.NodeSelector = map[string]string{"pool": "sandboxes"}
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			p.Spec.AutomountServiceAccountToken = ptr.To(true)
			p.Spec.EnableServiceLinks = ptr.To(true)
		}).Session(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "HOME", Value: "/home/me"}, {Name: "LANG", Value: "C.UTF-8"}}
			c.SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: ptr.To(false)}
			c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyNever)
			c.RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestart}}
			c.TerminationMessagePath = "/workspace/log"
			c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
			c.VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/tmp/"}}
			c.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
		}).Pod(func(p *corev1.PodTemplateSpec) {
			p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		}), imageVolume},
	}
}

func TestBuildMatchesGoldenOfEachShape(t *testing.T) {
	t.Parallel()
	for name, s := range shapes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if errs := pod.Validate(s.template.Obj(), s.options); len(errs) > 0 {
				t.Fatalf("template is refused: %v", errs.ToAggregate())
			}
			got, err := yaml.Marshal(pod.Build(s.sandbox.Obj(), s.template.Obj(), 1, keys, s.options))
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v (go test -update writes it)", err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("pod of shape %s (-golden +built):\n%s", name, diff)
			}
		})
	}
}

func TestEachShapePassesPodSecurityRestricted(t *testing.T) {
	t.Parallel()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for name, s := range shapes() {
		built := pod.Build(s.sandbox.Obj(), s.template.Obj(), 1, keys, s.options)
		if result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &built.ObjectMeta, &built.Spec)); !result.Allowed {
			t.Errorf("shape %s is not restricted: %s", name, result.ForbiddenDetail())
		}
	}
}

func TestBuildLeavesItsInputsAlone(t *testing.T) {
	t.Parallel()
	for name, s := range shapes() {
		sandbox, template := s.sandbox.Obj(), s.template.Obj()
		pod.Build(sandbox, template, 1, keys, s.options)
		if diff := cmp.Diff(s.template.Obj(), template); diff != "" {
			t.Errorf("shape %s: the template was changed:\n%s", name, diff)
		}
		if diff := cmp.Diff(s.sandbox.Obj(), sandbox); diff != "" {
			t.Errorf("shape %s: the sandbox was changed:\n%s", name, diff)
		}
	}
}

func TestNameIsALegalHostnameAndDiffersByGenerationAndUID(t *testing.T) {
	t.Parallel()
	for _, sandbox := range []string{"a", strings.Repeat("a", 63), strings.Repeat("a", 49) + "-" + strings.Repeat("b", 13)} {
		name := pod.Name(sandbox, "uid", 1)
		if errs := validation.IsDNS1123Label(name); len(errs) > 0 {
			t.Errorf("pod name %q of sandbox %q: %v", name, sandbox, errs)
		}
		if name != pod.Name(sandbox, "uid", 1) {
			t.Errorf("the name of %q differs from call to call", sandbox)
		}
		for what, other := range map[string]string{
			"another generation": pod.Name(sandbox, "uid", 2), "another UID": pod.Name(sandbox, "other", 1),
		} {
			if name == other {
				t.Errorf("sandbox %q: %s has the same pod name %q", sandbox, what, name)
			}
		}
	}
}
