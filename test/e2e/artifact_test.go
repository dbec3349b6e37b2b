package e2e

import (
	"context"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berth-dev/berth/test/session"
)

const (
	// artifactSlots is how many artifacts a session has at a time.
	artifactSlots = 128
	// exportsAtOnce is more.
	exportsAtOnce = 200
	// keptConnections is how many descriptors a gateway's idle connections are.
	keptConnections = 16
)

var _ = Describe("Exports", func() {
	It("at once get the session's 128 places and no more, a place is free again when its artifact is dropped, and the gateway keeps no descriptor", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("s"))
		run(ctx, s, makeFile)
		a := t.agentAt(ctx, "s")
		before := gatewayGauge(ctx, "process_open_fds")
		for range 2 {
			artifacts, refusals := exportAtOnce(ctx, s, "file.bin", exportsAtOnce)
			Expect(artifacts).To(HaveLen(artifactSlots))
			Expect(refusals).To(HaveLen(exportsAtOnce - artifactSlots))
			for _, err := range refusals {
				Expect(err).To(MatchError(session.ErrTool))
				Expect(err).To(MatchError(ContainSubstring("128 artifacts are held")))
			}
			for _, artifact := range []session.Artifact{artifacts[0], artifacts[artifactSlots-1]} {
				content, err := s.Read(ctx, artifact.URI)
				Expect(err).NotTo(HaveOccurred())
				Expect(sum(content)).To(Equal(artifact.SHA256))
			}
			for _, artifact := range artifacts {
				Expect(a.DropArtifact(ctx, a.pod, artifact.URI[strings.LastIndex(artifact.URI, ".")+1:])).To(Succeed())
			}
		}
		Expect(s.Close()).To(Succeed())
		// Connections to the agent are kept for the next call, a few of them.
		Eventually(gatewayGauge).WithArguments(ctx, "process_open_fds").WithTimeout(goneTimeout).WithPolling(interval).
			Should(BeNumerically("<=", before+keptConnections))
	}, SpecTimeout(specTimeout))
})

// exportAtOnce exports a file so many times at once.
func exportAtOnce(ctx context.Context, s *session.Session, path string, times int) (artifacts []session.Artifact, refusals []error) {
	var (
		mu  sync.Mutex
		all sync.WaitGroup
	)
	for range times {
		all.Go(func() {
			artifact, err := s.Export(ctx, path)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				refusals = append(refusals, err)
			} else {
				artifacts = append(artifacts, artifact)
			}
		})
	}
	all.Wait()
	return artifacts, refusals
}
