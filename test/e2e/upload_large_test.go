package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/session"
)

const (
	// largeBytes is more than a gateway's or a session's memory.
	largeBytes = 2 << 30
	// flatBytes is how much memory may grow by while a file passes.
	flatBytes = 32 << 20
	block     = 1 << 20
)

// distinct gives so many blocks, no two alike.
type distinct struct {
	block  [block]byte
	unread []byte
	given  uint64
	blocks uint64
}

func newDistinct(blocks uint64) *distinct {
	d := &distinct{blocks: blocks}
	rand.Read(d.block[:]) // never fails (crypto/rand)
	return d
}

// Read implements io.Reader.
func (d *distinct) Read(p []byte) (int, error) {
	if len(d.unread) == 0 {
		if d.given == d.blocks {
			return 0, io.EOF
		}
		d.given++
		binary.LittleEndian.PutUint64(d.block[:], d.given)
		d.unread = d.block[:]
	}
	n := copy(p, d.unread)
	d.unread = d.unread[n:]
	return n, nil
}

// itUploadsMuch sends a file that fits no memory to a tenant's session.
func itUploadsMuch(of func() *tenant) {
	It("of 2 GiB passes through a gateway and an agent whose memory stays flat", func(ctx context.Context) {
		t := of()
		t.addTemplate(ctx, "large", withImage(image("sandbox")), func(template *v1alpha1.SandboxTemplate) {
			template.Spec.Workspace = &v1alpha1.Workspace{EmptyDir: &v1alpha1.EmptyDirWorkspace{SizeLimit: ptr.To(resource.MustParse("4Gi"))}}
			template.Spec.Limits = &v1alpha1.Limits{UploadBytes: ptr.To[int64](largeBytes), ArtifactBytes: ptr.To[int64](largeBytes)}
		})
		t.newSandbox(ctx, "large", "large")
		s := connect(ctx, t.target("large"))
		gateways, agent := gatewayGauge(ctx, "process_resident_memory_bytes"), agentMemory(ctx, s)

		hash, content := sha256.New(), newDistinct(largeBytes/block)
		uploaded := startUpload(ctx, t.target("large"), "large.bin", io.TeeReader(content, hash))
		var end uploadEnd
		for waiting := true; waiting; {
			select {
			case end = <-uploaded:
				waiting = false
			default:
				Expect(gatewayGauge(ctx, "process_resident_memory_bytes")-gateways).To(BeNumerically("<", flatBytes), "gateways")
				Expect(agentMemory(ctx, s)-agent).To(BeNumerically("<", flatBytes), "agent")
			}
		}
		Expect(end.err).NotTo(HaveOccurred())
		Expect(end.file.Size).To(BeEquivalentTo(largeBytes))
		AddReportEntry("2 GiB through the gateway", end.took.String())
		want := hex.EncodeToString(hash.Sum(nil))
		Expect(run(ctx, s, "sha256sum < uploads/large.bin")).To(HavePrefix(want))

		artifact, err := s.Export(ctx, "uploads/large.bin")
		Expect(err).NotTo(HaveOccurred())
		Expect(artifact.Size).To(BeEquivalentTo(largeBytes))
		last := fmt.Sprintf("bytes=%d-", largeBytes-block)
		answer, err := session.Get(ctx, t.target("large"), artifact.URI, http.Header{"Range": {last}})
		Expect(err).NotTo(HaveOccurred())
		defer answer.Body.Close()
		Expect(answer.StatusCode).To(Equal(http.StatusPartialContent))
		read, err := io.ReadAll(answer.Body)
		Expect(err).NotTo(HaveOccurred())
		Expect(bytes.Equal(read, content.block[:])).To(BeTrue(), "its last piece")
	}, SpecTimeout(specTimeout))
}

// agentMemory is the resident memory of a session's agent, in bytes.
func agentMemory(ctx context.Context, s *session.Session) float64 {
	GinkgoHelper()
	kib, err := strconv.ParseFloat(strings.TrimSpace(run(ctx, s, `awk '$1 == "VmRSS:" {print $2}' /proc/1/status`)), 64)
	Expect(err).NotTo(HaveOccurred())
	return kib * 1024
}
