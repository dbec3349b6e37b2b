package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/session"
)

// upload sends a file, which must be taken.
func upload(ctx context.Context, target session.Target, name string, content io.Reader) session.File {
	GinkgoHelper()
	file, err := session.Upload(ctx, target, name, content)
	Expect(err).NotTo(HaveOccurred())
	return file
}

// refusedUpload sends a file, which must be refused, and gives the status.
func refusedUpload(ctx context.Context, target session.Target, name string, content io.Reader) int {
	GinkgoHelper()
	_, err := session.Upload(ctx, target, name, content)
	var refusal *session.Refusal
	Expect(errors.As(err, &refusal)).To(BeTrue(), "%v", err)
	return refusal.Status
}

var _ = Describe("An uploaded file", func() {
	It("is there for the session's commands, byte by byte, and comes back as an artifact", func(ctx context.Context) {
		t := newTenant(ctx)
		content := make([]byte, 3<<20)
		rand.Read(content) // never fails (crypto/rand)
		// The session doesn't exist yet.
		file := upload(ctx, t.target("s"), "../my data.tar.gz", bytes.NewReader(content))
		Expect(file).To(Equal(session.File{Path: "/workspace/uploads/my_data.tar.gz", Name: "my_data.tar.gz", Size: int64(len(content))}))

		s := connect(ctx, t.target("s"))
		Expect(run(ctx, s, "cd / && sha256sum < "+file.Path+" | cut -d' ' -f1")).To(Equal(sum(content) + "\n"))
		artifact, err := s.Export(ctx, file.Path)
		Expect(err).NotTo(HaveOccurred())
		read, err := s.Read(ctx, artifact.URI)
		Expect(err).NotTo(HaveOccurred())
		Expect(sum(read)).To(Equal(sum(content)))

		file = upload(ctx, t.target("s"), "my data.tar.gz", bytes.NewReader(nil))
		Expect(file.Name).To(Equal("my_data_2.tar.gz"), "nothing is overwritten")
	}, SpecTimeout(specTimeout))

	It("is no larger than its template lets it be", func(ctx context.Context) {
		const limit = 1 << 20
		t := newTenant(ctx, func(template *v1alpha1.SandboxTemplate) {
			template.Spec.Limits = &v1alpha1.Limits{UploadBytes: ptr.To[int64](limit)}
		})
		content := make([]byte, limit+1)
		upload(ctx, t.target("s"), "fits", bytes.NewReader(content[:limit]))
		Expect(refusedUpload(ctx, t.target("s"), "announced", bytes.NewReader(content))).To(Equal(http.StatusRequestEntityTooLarge))
		Expect(refusedUpload(ctx, t.target("s"), "not announced", io.MultiReader(bytes.NewReader(content)))).To(Equal(http.StatusRequestEntityTooLarge))
		Expect(run(ctx, connect(ctx, t.target("s")), "ls -A uploads")).To(Equal("fits\n"), "what was refused left nothing")
	}, SpecTimeout(specTimeout))

	It("is taken of nobody who may not use the session", func(ctx context.Context) {
		t := newTenant(ctx)
		run(ctx, connect(ctx, t.target("s")), "true")
		target := t.target("s")
		target.Token = t.newCaller(ctx, "other")
		Expect(refusedUpload(ctx, target, "a", strings.NewReader("x"))).To(Equal(http.StatusForbidden))
		target.Token = ""
		Expect(refusedUpload(ctx, target, "a", strings.NewReader("x"))).To(Equal(http.StatusUnauthorized))
	}, SpecTimeout(specTimeout))
})
