package e2e

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/session"
)

var _ = Describe("The file tools of a session", func() {
	It("write, edit, read and list what its commands see", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("s"))
		const before = "one\ntwo\nthree\ntwo\n"
		Expect(s.WriteFile(ctx, "src/deep/file.txt", before)).To(Succeed(), "the first call makes the session")
		Expect(run(ctx, s, "cat src/deep/file.txt; chmod 750 src/deep/file.txt")).To(Equal(before))

		Expect(s.EditFile(ctx, "src/deep/file.txt", session.Edit{Old: "one", New: "1"}, session.Edit{Old: "two", New: "2", ReplaceAll: true})).To(Succeed())
		Expect(run(ctx, s, "cat src/deep/file.txt; stat -c %a src/deep/file.txt")).To(Equal("1\n2\nthree\n2\n750\n"))
		err := s.EditFile(ctx, "src/deep/file.txt", session.Edit{Old: "three", New: "3"}, session.Edit{Old: "2", New: "two"})
		Expect(err).To(MatchError(session.ErrTool), "2 is there twice")
		Expect(run(ctx, s, "cat src/deep/file.txt")).To(Equal("1\n2\nthree\n2\n"), "all edits or none")

		run(ctx, s, "seq 1000000 > numbers; head -c 1000 /dev/zero > zeros")
		text, err := s.ReadFile(ctx, "numbers", map[string]any{"offset": 999_999, "limit": 1})
		Expect(err).NotTo(HaveOccurred())
		Expect(text).To(Equal(session.Text{Content: "999999\n", Encoding: "utf-8", Size: 6_888_896, TotalLines: text.TotalLines, NextOffset: 1_000_000}))
		text, err = s.ReadFile(ctx, "zeros", map[string]any{"byte_offset": 999})
		Expect(err).NotTo(HaveOccurred())
		Expect(text.Content).To(Equal("AA=="))
		Expect(text.Encoding).To(Equal("base64"))

		entries, err := s.ListFiles(ctx, ".", map[string]any{"glob": "**/*.txt"})
		Expect(err).NotTo(HaveOccurred())
		Expect(entries).To(Equal([]session.Entry{{Path: "src/deep/file.txt", Type: "file", Size: int64(len("1\n2\nthree\n2\n"))}}))
	}, SpecTimeout(specTimeout))

	It("reach nothing outside, at once, whatever lies there", func(ctx context.Context) {
		t := newTenant(ctx, withImage(image("sandbox")))
		s := connect(ctx, t.target("s"))
		run(ctx, s, layPaths)
		outside := []string{
			"../etc/passwd", "/etc/passwd", "/workspace/../etc/passwd", "/workspacex/file", "/tmp/out/file",
			"link-out", "link-etc", "link-loop", "link-environ", "link-device", "link-fd",
			"dir-out/file", "dir-up/file", "dir-root/etc/passwd", "/proc/self/environ", "/proc/self/root/etc/passwd", "/dev/zero", "/dev/null",
			"fifo", "socket", "in/file\x00", "", longest + "x",
		}
		for _, path := range outside {
			for tool, call := range map[string]func() error{
				"read_file":  func() error { _, err := s.ReadFile(ctx, path, nil); return err },
				"write_file": func() error { return s.WriteFile(ctx, path, "overwritten") },
				"edit_file":  func() error { return s.EditFile(ctx, path, session.Edit{Old: "outside", New: "edited"}) },
			} {
				started := time.Now()
				err := call()
				Expect(err).To(MatchError(session.ErrTool), "%s %.80q", tool, path)
				Expect(time.Since(started)).To(BeNumerically("<", quickly), "%s %.80q", tool, path)
			}
		}
		for _, path := range []string{"..", "/", "/etc", "/tmp/out", "dir-out", "dir-up", "dir-root", "/proc/self", "link-loop"} {
			_, err := s.ListFiles(ctx, path, nil)
			Expect(err).To(MatchError(session.ErrTool), path)
		}
		Expect(run(ctx, s, "ls -A /tmp/out; cat /tmp/out/file; ls -d /workspacex 2>/dev/null || true")).To(Equal("file\noutside, which is longer\n"), "nothing was changed")
	}, SpecTimeout(specTimeout))

	It("never reach outside while links are swapped all the time", func(ctx context.Context) {
		t := newTenant(ctx, withImage(image("sandbox")))
		s := connect(ctx, t.target("s"))
		run(ctx, s, layPaths)
		id := startSwapping(ctx, s)
		ends := map[bool]int{}
		for deadline := time.Now().Add(raceTime); min(ends[true], ends[false]) < raceEnds && time.Now().Before(deadline); {
			text, err := s.ReadFile(ctx, "swapped/file", nil)
			ends[err == nil]++
			if err == nil {
				Expect(text.Content).To(Equal("inside\n"))
			}
			// What they end in depends on where the link leads at that time.
			_ = s.WriteFile(ctx, "swapped/new", "inside\n")
			_ = s.EditFile(ctx, "swapped/new", session.Edit{Old: "inside", New: "inside"})
		}
		Expect(s.Signal(ctx, id, "KILL")).To(Succeed())
		Expect(ends[true]).NotTo(BeZero(), "some must meet the inside: %v", ends)
		Expect(ends[false]).NotTo(BeZero(), "some must meet the outside: %v", ends)
		Expect(run(ctx, s, "ls -A /tmp/out; cat /tmp/out/file")).To(Equal("file\noutside, which is longer\n"))
		Expect(strings.TrimSpace(run(ctx, s, "cat in/new"))).To(Equal("inside"))
	}, SpecTimeout(specTimeout))

	It("reach the roots that the template names, which exports don't", func(ctx context.Context) {
		t := newTenant(ctx, func(template *v1alpha1.SandboxTemplate) {
			spec := &template.Spec.PodTemplate.Spec
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
			spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/data"})
			template.Spec.Files = &v1alpha1.Files{Roots: []v1alpha1.FileRoot{"/data"}}
		})
		s := connect(ctx, t.target("s"))
		Expect(s.WriteFile(ctx, "/data/file", "of the root")).To(Succeed())
		Expect(run(ctx, s, "cat /data/file")).To(Equal("of the root"))
		Expect(s.ReadFile(ctx, "/data/file", nil)).To(HaveField("Content", "of the root"))
		Expect(s.ListFiles(ctx, "/data", nil)).To(HaveLen(1))
		Expect(s.WriteFile(ctx, "/data/../tmp/file", "x")).To(MatchError(session.ErrTool))
		_, err := s.Export(ctx, "/data/file")
		Expect(err).To(MatchError(session.ErrTool))
	}, SpecTimeout(specTimeout))
})
