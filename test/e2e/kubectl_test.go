package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
)

// samplesFolder holds what the documentation tells people to apply.
const samplesFolder = "../../config/samples"

// kubectl runs the kubectl of the PATH, which must succeed, and gives its output.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := exec.CommandContext(ctx, "kubectl", args...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl %s: %s", strings.Join(args, " "), output)
	return string(output)
}

// table splits kubectl's output into rows of columns.
func table(output string) [][]string {
	var rows [][]string
	for line := range strings.Lines(strings.TrimSpace(output)) {
		rows = append(rows, strings.Fields(line))
	}
	return rows
}

var _ = Describe("kubectl", func() {
	files, err := filepath.Glob(filepath.Join(samplesFolder, "*.yaml"))
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		It("applies the sample "+filepath.Base(file)+" and sees its Sandboxes Ready", func(ctx context.Context) {
			t := newBareTenant(ctx)
			objects, err := cluster.Objects(file, t.namespace)
			Expect(err).NotTo(HaveOccurred())
			if !holds(file, v1alpha1.DefaultTemplateName) {
				t.addTemplate(ctx, v1alpha1.DefaultTemplateName, withImage(image("sandbox")))
			}
			kubectl(ctx, "apply", "-n", t.namespace, "-f", inNamespace(file, t.namespace))
			for _, object := range objects {
				if object.GetKind() == "Sandbox" {
					kubectl(ctx, "wait", "-n", t.namespace, "sandbox/"+object.GetName(),
						"--for=condition=Ready", "--timeout="+readyTimeout.String())
				}
			}
		}, SpecTimeout(specTimeout))
	}

	It("shows whether a Sandbox is ready and why", func(ctx context.Context) {
		t := newTenant(ctx)
		t.newSandbox(ctx, "good", v1alpha1.DefaultTemplateName)
		t.newSandbox(ctx, "lost", "nowhere")
		sandbox := t.waitReady(ctx, "good")
		t.waitReason(ctx, "lost", v1alpha1.ReasonTemplateNotFound)

		rows := table(kubectl(ctx, "get", "sbx", "-n", t.namespace))
		Expect(rows[0]).To(Equal([]string{"NAME", "READY", "REASON", "AGE"}))
		Expect(rows[1][:3]).To(Equal([]string{"good", "True", v1alpha1.ReasonReady}))
		Expect(rows[2][:3]).To(Equal([]string{"lost", "False", v1alpha1.ReasonTemplateNotFound}))

		wide := table(kubectl(ctx, "get", "sbx", "good", "-n", t.namespace, "-o", "wide"))
		Expect(wide[0]).To(ContainElements("TEMPLATE", "MODE", "POD", "IP", "NODE", "OWNER", "EXPIRES", "MESSAGE"))
		Expect(wide[1]).To(ContainElements(v1alpha1.DefaultTemplateName, "Running", sandbox.Status.PodName, sandbox.Status.PodIP, sandbox.Status.NodeName))
	}, SpecTimeout(specTimeout))

	It("deletes a Sandbox and its pod with it", func(ctx context.Context) {
		t := newTenant(ctx)
		t.newSandbox(ctx, "short", v1alpha1.DefaultTemplateName)
		pod := t.waitReady(ctx, "short").Status.PodName
		kubectl(ctx, "delete", "sandbox", "short", "-n", t.namespace, "--timeout="+goneTimeout.String())
		Expect(admin.WaitUntilGone(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: pod}}, &corev1.PodList{})).To(Succeed())
	}, SpecTimeout(specTimeout))

	It("deletes a namespace with live sessions in it", func(ctx context.Context) {
		t := newTenant(ctx)
		for _, id := range sessionNames("s", 3) {
			t.newSandbox(ctx, id, v1alpha1.DefaultTemplateName)
		}
		for _, id := range sessionNames("s", 3) {
			t.waitReady(ctx, id)
		}
		kubectl(ctx, "delete", "namespace", t.namespace, "--timeout="+goneTimeout.String())
	}, SpecTimeout(specTimeout))
})

// holds tells whether a sample brings a template of that name.
func holds(file, template string) bool {
	GinkgoHelper()
	objects, err := cluster.Objects(file, "")
	Expect(err).NotTo(HaveOccurred())
	for _, object := range objects {
		if object.GetKind() == "SandboxTemplate" && object.GetName() == template {
			return true
		}
	}
	return false
}

// inNamespace gives a copy of a sample whose objects are in the spec's namespace,
// whichever they name themselves.
func inNamespace(file, namespace string) string {
	GinkgoHelper()
	content, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	var lines []string
	for line := range strings.Lines(string(content)) {
		if !strings.HasPrefix(line, "  namespace: ") {
			lines = append(lines, line)
		}
	}
	copied := filepath.Join(GinkgoT().TempDir(), filepath.Base(file))
	Expect(os.WriteFile(copied, []byte(strings.Join(lines, "")), 0o600)).To(Succeed())
	return copied
}
