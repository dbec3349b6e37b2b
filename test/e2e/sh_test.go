package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berth-dev/berth/test/session"
)

// What a plain sh keeps from call to call is in the shell's table.
var _ = Describe("An image without bash", func() {
	var (
		t *tenant
		s *session.Session
	)
	BeforeEach(func(ctx context.Context) {
		t = newTenant(ctx, withImage(image("sandbox-busybox")))
		s = connect(ctx, t.target("plain"))
	})

	It("works with its sh, which keeps exported variables and the working directory", func(ctx context.Context) {
		run(ctx, s, "export kept=yes; cd /tmp")
		Expect(run(ctx, s, `echo "$kept $PWD"`)).To(Equal("yes /tmp\n"))
		result, err := s.Bash(ctx, "exit 3")
		Expect(err).NotTo(HaveOccurred())
		Expect(result.ExitCode).To(Equal(3))
		Expect(run(ctx, s, "pwd")).To(Equal("/tmp\n"))
	}, SpecTimeout(specTimeout))

	It("has background processes, which start as a command would", func(ctx context.Context) {
		run(ctx, s, "export kept=yes; cd /tmp")
		id, err := s.Start(ctx, `echo "$kept $PWD"; read line; echo "got $line"; exec sleep 300`, false)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Input(ctx, id, map[string]any{"input": "one\n"})).To(Succeed())
		all, _ := readUntil(ctx, s, id, "got one\n")
		Expect(all).To(Equal("yes /tmp\ngot one\n"))
		Expect(s.Signal(ctx, id, "TERM")).To(Succeed())
		_, code := readToEnd(ctx, s, id)
		Expect(code).To(Equal(143))
	}, SpecTimeout(specTimeout))

	It("lists what a command leaves behind", func(ctx context.Context) {
		run(ctx, s, "(until [ -e go ]; do sleep 0.1; done; echo late) &")
		Expect(t.release(ctx, "plain")).To(Succeed())
		processes, err := s.Processes(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(processes).To(ConsistOf(HaveField("Kind", "job")))
		readUntil(ctx, s, processes[0].ID, "late\n")
	}, SpecTimeout(specTimeout))

	It("tells output while a command runs", func(ctx context.Context) {
		run(ctx, s, "true")
		result, err := t.streamUntilTold(ctx, s, "plain")
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Stdout).To(Equal("begun\nended\n"))
	}, SpecTimeout(specTimeout))

	It("keeps the whole of a long output as a log", func(ctx context.Context) {
		run(ctx, s, fmt.Sprintf("head -c %d /dev/urandom > out", long))
		result, err := s.Bash(ctx, "cat out")
		Expect(err).NotTo(HaveOccurred())
		want := run(ctx, s, "sha256sum < out | cut -d' ' -f1")
		Expect(sum(readParts(ctx, s, result.LogURI, long)) + "\n").To(Equal(want))
	}, SpecTimeout(specTimeout))
})
