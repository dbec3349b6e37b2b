package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/session"
)

// uploaded is the gateway's answer to an upload.
type uploaded struct {
	Path string `json:"path"`
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// upload sends a file to a session.
func upload(ctx context.Context, target session.Target, name string, content io.Reader) (status int, file uploaded) {
	GinkgoHelper()
	to := "http://" + target.Address + "/sessions/" + target.ID + "/files?name=" + url.QueryEscape(name)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, content)
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+target.Token)
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	if response.StatusCode == http.StatusCreated {
		Expect(json.Unmarshal(body, &file)).To(Succeed(), "%s", body)
	}
	return response.StatusCode, file
}

var _ = Describe("An uploaded file", func() {
	It("is there for the session's commands, byte by byte, and comes back as an artifact", func(ctx context.Context) {
		t := newTenant(ctx)
		content := make([]byte, 3<<20)
		rand.Read(content) // never fails (crypto/rand)
		// The session doesn't exist yet.
		status, file := upload(ctx, t.target("s"), "../my data.tar.gz", bytes.NewReader(content))
		Expect(status).To(Equal(http.StatusCreated))
		Expect(file).To(Equal(uploaded{Path: "/workspace/uploads/my_data.tar.gz", Name: "my_data.tar.gz", Size: int64(len(content))}))

		s := connect(ctx, t.target("s"))
		Expect(run(ctx, s, "cd / && sha256sum < "+file.Path+" | cut -d' ' -f1")).To(Equal(sum(content) + "\n"))
		artifact, err := s.Export(ctx, file.Path)
		Expect(err).NotTo(HaveOccurred())
		read, err := s.Read(ctx, artifact.URI)
		Expect(err).NotTo(HaveOccurred())
		Expect(sum(read)).To(Equal(sum(content)))

		status, file = upload(ctx, t.target("s"), "my data.tar.gz", bytes.NewReader(nil))
		Expect(status).To(Equal(http.StatusCreated))
		Expect(file.Name).To(Equal("my_data_2.tar.gz"), "nothing is overwritten")
	}, SpecTimeout(specTimeout))

	It("is no larger than its template lets it be", func(ctx context.Context) {
		const limit = 1 << 20
		t := newTenant(ctx, func(template *v1alpha1.SandboxTemplate) {
			template.Spec.Limits = &v1alpha1.Limits{UploadBytes: ptr.To[int64](limit)}
		})
		content := make([]byte, limit+1)
		status, _ := upload(ctx, t.target("s"), "fits", bytes.NewReader(content[:limit]))
		Expect(status).To(Equal(http.StatusCreated))
		status, _ = upload(ctx, t.target("s"), "announced", bytes.NewReader(content))
		Expect(status).To(Equal(http.StatusRequestEntityTooLarge))
		status, _ = upload(ctx, t.target("s"), "not announced", io.MultiReader(bytes.NewReader(content)))
		Expect(status).To(Equal(http.StatusRequestEntityTooLarge))
		Expect(run(ctx, connect(ctx, t.target("s")), "ls -A uploads")).To(Equal("fits\n"), "what was refused left nothing")
	}, SpecTimeout(specTimeout))

	It("is taken of nobody who may not use the session", func(ctx context.Context) {
		t := newTenant(ctx)
		run(ctx, connect(ctx, t.target("s")), "true")
		target := t.target("s")
		target.Token = t.newCaller(ctx, "other")
		status, _ := upload(ctx, target, "a", bytes.NewReader([]byte("x")))
		Expect(status).To(Equal(http.StatusForbidden))
		target.Token = ""
		status, _ = upload(ctx, target, "a", bytes.NewReader([]byte("x")))
		Expect(status).To(Equal(http.StatusUnauthorized))
	}, SpecTimeout(specTimeout))
})
