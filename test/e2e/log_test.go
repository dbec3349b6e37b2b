package e2e

import (
	"bytes"
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berth-dev/berth/test/session"
)

const (
	// long is how many bytes a command writes to each stream: more than a result
	// holds, and more than one read may give.
	long = 12_000_000
	// part is how much of a log is read at a time.
	part = 5_000_000
)

// readParts reads so many bytes of a resource in parts.
func readParts(ctx context.Context, s *session.Session, uri string, size int) []byte {
	GinkgoHelper()
	var content bytes.Buffer
	for content.Len() < size {
		read, err := s.Read(ctx, fmt.Sprintf("%s?offset=%d&length=%d", uri, content.Len(), part))
		Expect(err).NotTo(HaveOccurred())
		Expect(read).To(HaveLen(min(part, size-content.Len())))
		content.Write(read)
	}
	return content.Bytes()
}

var _ = Describe("The log of a command whose output doesn't fit its result", func() {
	It("is the whole of each stream byte by byte, through any replica", func(ctx context.Context) {
		t := newTenant(ctx)
		Expect(len(t.gateways)).To(BeNumerically(">=", 2), "replicas of the gateway")
		s := connect(ctx, t.targetAt(0, "s"))
		run(ctx, s, fmt.Sprintf("head -c %d /dev/urandom > out; head -c %d /dev/urandom > err", long, long))
		result, err := s.Bash(ctx, "cat out; cat err >&2")
		Expect(err).NotTo(HaveOccurred())
		Expect(result.ExitCode).To(BeZero())
		Expect(result.Truncated).To(BeTrue())
		Expect(result.OmittedBytes).To(BeNumerically(">", long))

		other := connect(ctx, t.targetAt(1, "s"))
		for file, uri := range map[string]string{"out": result.LogURI, "err": result.StderrLogURI} {
			Expect(uri).To(HavePrefix("artifact://berth/"))
			want := run(ctx, s, "sha256sum < "+file+" | cut -d' ' -f1")
			Expect(sum(readParts(ctx, other, uri, long))+"\n").To(Equal(want), file)
		}
	}, SpecTimeout(specTimeout))

	It("is another caller's no more than an artifact is", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("s"))
		result, err := s.Bash(ctx, fmt.Sprintf("head -c %d /dev/zero", long))
		Expect(err).NotTo(HaveOccurred())
		Expect(result.LogURI).NotTo(BeEmpty())
		Expect(result.StderrLogURI).To(BeEmpty(), "a stream that fits its result has no log")
		stranger := t.target("s")
		stranger.Token = t.newCaller(ctx, "stranger")
		_, err = connect(ctx, stranger).Read(ctx, result.LogURI+"?offset=0&length=1")
		Expect(err).To(MatchError(ContainSubstring("not found")))
		content, err := s.Read(ctx, result.LogURI+"?offset=0&length=1")
		Expect(err).NotTo(HaveOccurred())
		Expect(content).To(Equal([]byte{0}))
	}, SpecTimeout(specTimeout))

	It("isn't written for output that fits", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("s"))
		result, err := s.Bash(ctx, "echo out; echo err >&2")
		Expect(err).NotTo(HaveOccurred())
		Expect(result.LogURI + result.StderrLogURI).To(BeEmpty())
		Expect(run(ctx, s, "find .berth -type f 2>/dev/null || true")).To(BeEmpty())
	}, SpecTimeout(specTimeout))
})
