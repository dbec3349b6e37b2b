package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berth-dev/berth/test/session"
)

var _ = Describe("Two sessions of one caller", func() {
	var (
		t    *tenant
		a, b *session.Session
	)
	BeforeEach(func(ctx context.Context) {
		t = newTenant(ctx)
		a, b = connect(ctx, t.target("a")), connect(ctx, t.target("b"))
	})

	It("share no file", func(ctx context.Context) {
		run(ctx, a, "echo secret > /workspace/file; echo secret > /tmp/file")
		Expect(run(ctx, b, "ls -A /workspace /tmp")).NotTo(ContainSubstring("file"))
	}, SpecTimeout(specTimeout))

	It("share no variable, function or working directory", func(ctx context.Context) {
		run(ctx, a, "export secret=1; secret() { :; }; cd /tmp")
		Expect(run(ctx, b, `echo "${secret-unset} $(type -t secret) $PWD"`)).To(Equal("unset  /workspace\n"))
		Expect(run(ctx, a, `echo "$secret $(type -t secret) $PWD"`)).To(Equal("1 function /tmp\n"))
	}, SpecTimeout(specTimeout))

	It("see none of the other's processes", func(ctx context.Context) {
		run(ctx, a, "sleep 98765 </dev/null >/dev/null 2>&1 &")
		const find = `grep -lsa '[s]leep.98765' /proc/[0-9]*/cmdline | wc -l`
		Expect(run(ctx, a, find)).NotTo(Equal("0\n"), "the process must be there to be hidden")
		Expect(run(ctx, b, find)).To(Equal("0\n"))
	}, SpecTimeout(specTimeout))

	It("reach none of the other's ports", func(ctx context.Context) {
		run(ctx, a, "nc -ll -p 9999 -e true </dev/null >/dev/null 2>&1 &")
		run(ctx, b, "true")
		ip := t.sandbox(ctx, "a").Status.PodIP
		for _, port := range []int{9999, 8090} {
			expectClosed(ctx, b, ip, port)
		}
		Expect(connects(ctx, a, "127.0.0.1", 9999)).To(BeTrue(), "the port must be open to be closed to others")
	}, SpecTimeout(specTimeout))
})

// connects tells whether a session can open a TCP connection to an address.
func connects(ctx context.Context, s *session.Session, ip string, port int) bool {
	GinkgoHelper()
	result, err := s.Bash(ctx, dial(ip, port))
	Expect(err).NotTo(HaveOccurred())
	return result.ExitCode == 0
}

// dial is a bash command that succeeds if it can open a TCP connection.
func dial(ip string, port int) string {
	return fmt.Sprintf("timeout %d bash -c 'exec 3<>/dev/tcp/%s/%d'", int(connectTimeout.Seconds()), ip, port)
}
