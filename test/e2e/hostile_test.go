package e2e

import (
	"context"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/session"
)

var _ = Describe("A command that takes every process that its pod may have", func() {
	for name, command := range map[string]string{
		"in the foreground":   `:(){ :|:; }; :`,
		"in the background":   `:(){ :|:& }; :; sleep 100`,
		"of sleepers":         `while :; do sleep 777 & done`,
		"of detached ones":    `while :; do setsid -f sleep 777; done`,
		"left behind by then": `:(){ :|:& }; :`,
		"that spin":           `for i in $(seq 300); do while :; do :; done & done; wait`,
	} {
		It("ends in a result, and the session goes on: "+name, func(ctx context.Context) {
			t := newTenant(ctx, withImage(image("sandbox")))
			s := connect(ctx, t.target("s"))
			Expect(run(ctx, s, "kept=yes; echo mine > file; nice")).To(Equal("19\n"), "behind the agent")
			a := t.agentAt(ctx, "s")
			run(ctx, connect(ctx, t.target("beside")), "true")

			beneath, beside := askHealth(ctx, a), askHealth(ctx, t.agentAt(ctx, "beside"))
			_, err := s.BashWithin(ctx, command, 5*time.Second)
			Expect(err).NotTo(HaveOccurred())

			result, err := s.Bash(ctx, `echo "$kept"; cat file`)
			Expect(err).NotTo(HaveOccurred())
			if result.Stdout != "yes\nmine\n" {
				// The table may still be full of what was left behind; then it says so.
				Expect(result.Stderr+result.Notice).To(Or(ContainSubstring("limit of processes"), ContainSubstring("Resource temporarily unavailable")), "%+v", result)
			}
			Expect(run(ctx, s, "cat file")).To(Equal("mine\n"), "and then all is well")
			expectPrompt(beneath(), beside())
			status := t.sandbox(ctx, "s").Status
			Expect(status.PodGeneration).To(HaveValue(Equal(int64(1))), "the same pod")
			Expect(status.LastTermination).To(BeNil(), "the same container")

			// What still runs would take the others' processor.
			for _, id := range []string{"s", "beside"} {
				Expect(session.End(ctx, t.target(id))).To(Equal(http.StatusNoContent))
			}
			Eventually(func() int { return len(t.sessionPods(ctx, "s")) }).WithTimeout(goneTimeout).WithPolling(interval).Should(BeZero())
		}, SpecTimeout(specTimeout))
	}
})

var _ = Describe("A process that kubectl exec started in a session's pod", func() {
	It("outlives a command that runs out of time, and its kill", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("s"))
		run(ctx, s, "true")
		foreign, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			_, err := admin.Exec(foreign, t.podOf(ctx, "s"), v1alpha1.SessionContainerName, "sh", "-c", "echo > /workspace/started; exec sleep 4321")
			ended <- err
		}()
		Eventually(func(g Gomega) {
			result, err := s.Bash(ctx, "cat started")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.ExitCode).To(BeZero())
		}).WithTimeout(readyTimeout).WithPolling(interval).Should(Succeed())

		result, err := s.BashWithin(ctx, "setsid sleep 4322 & sleep 4322", time.Second)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.TimedOut).To(BeTrue())
		Expect(strings.Fields(run(ctx, s, `cat /proc/[0-9]*/cmdline | tr '\0' '\n' | grep '^432[12]$'`))).To(Equal([]string{"4321"}))
		Consistently(ended).WithTimeout(interval).ShouldNot(Receive())
		cancel()
		Eventually(ended).WithTimeout(goneTimeout).Should(Receive())
	}, SpecTimeout(specTimeout))
})

var _ = Describe("A full disk", func() {
	// A tmpfs is full with an error; a full emptyDir of the node's disk evicts.
	withTmpfs := func(at string) func(*v1alpha1.SandboxTemplate) {
		return func(t *v1alpha1.SandboxTemplate) {
			spec := &t.Spec.PodTemplate.Spec
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "small", VolumeSource: corev1.VolumeSource{
				EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: ptr.To(resource.MustParse("1Mi"))},
			}})
			spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "small", MountPath: at})
		}
	}

	It("of the session's files is the command's failure", func(ctx context.Context) {
		t := newTenant(ctx, withTmpfs("/workspace/data"))
		s := connect(ctx, t.target("s"))
		result, err := s.Bash(ctx, "kept=yes; cd data; printf %2000000s > file")
		Expect(err).NotTo(HaveOccurred())
		Expect(result.ExitCode).NotTo(BeZero())
		Expect(result.Stderr).To(ContainSubstring("No space left on device"))
		Expect(run(ctx, s, `echo "$kept $PWD"; cat <<< here`)).To(Equal("yes /workspace/data\nhere\n"))
	}, SpecTimeout(specTimeout))

	It("of the logs cuts a command's log, and not the command", func(ctx context.Context) {
		t := newTenant(ctx, withTmpfs("/workspace/.berth"))
		s := connect(ctx, t.target("s"))
		result, err := s.Bash(ctx, "kept=yes; head -c 3000000 /dev/zero; echo done >&2")
		Expect(err).NotTo(HaveOccurred())
		Expect(result.ExitCode).To(BeZero())
		Expect(result.Stderr).To(Equal("done\n"))
		Expect(result.Truncated).To(BeTrue())
		Expect(result.Notice).To(ContainSubstring("log"), "it says that the log is not whole")
		Expect(run(ctx, s, `echo "$kept"`)).To(Equal("yes\n"))
	}, SpecTimeout(specTimeout))
})
