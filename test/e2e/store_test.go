package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/session"
)

// inStore keeps exports in an artifact store.
func inStore(name v1alpha1.StoreName) func(*v1alpha1.SandboxTemplate) {
	return func(t *v1alpha1.SandboxTemplate) { t.Spec.Artifacts = &v1alpha1.Artifacts{Store: name} }
}

var _ = Describe("A template that names an artifact store", Serial, Ordered, func() {
	var (
		t       *tenant
		store   *s3Pod
		started metav1.Time
	)
	BeforeAll(func(ctx context.Context) {
		started = metav1.Now()
		t = newTenant(ctx, inStore("archive"))
		store = newS3Pod(ctx, t)
		store.install(ctx)
	}, NodeTimeout(specTimeout))
	BeforeEach(func(ctx context.Context) { t.gateways = forwardGateways(ctx) }, NodeTimeout(specTimeout))

	// unmentioned holds all that others than the gateway's administrator see.
	unmentioned := func(ctx context.Context, pod *corev1.Pod, sandbox *v1alpha1.Sandbox) {
		GinkgoHelper()
		for _, object := range []any{pod, sandbox} {
			text, err := json.Marshal(object)
			Expect(err).NotTo(HaveOccurred())
			store.unmentioned("an object", string(text))
		}
		var logs bytes.Buffer
		Expect(dumpLogs(ctx, &logs, started)).To(Succeed())
		Expect(logs.String()).To(ContainSubstring("export_artifact"), "the gateways' logs")
		store.unmentioned("the logs", logs.String())
	}

	It("has exports that outlive their session and both replicas of the gateway, for their owner alone", func(ctx context.Context) {
		s := connect(ctx, t.target("s"))
		want := run(ctx, s, makeFile)
		artifact, err := s.Export(ctx, "file.bin")
		Expect(err).NotTo(HaveOccurred())
		Expect(artifact.SHA256 + "\n").To(Equal(want))
		sandbox := t.sandbox(ctx, "s")
		Expect(sandbox.Status.ArtifactStore).To(BeEquivalentTo("archive"))
		pod := &corev1.Pod{}
		Expect(admin.Get(ctx, t.podOf(ctx, "s"), pod)).To(Succeed())
		environment := run(ctx, s, "tr '\\0' '\\n' < /proc/1/environ; env; cat /proc/mounts")
		store.unmentioned("the sandbox", environment)
		unmentioned(ctx, pod, sandbox)

		Expect(session.End(ctx, t.target("s"))).To(Equal(http.StatusNoContent))
		Expect(admin.WaitUntilGone(ctx, sandbox, &v1alpha1.SandboxList{})).To(Succeed())
		restart(ctx, "gateway")
		t.gateways = forwardGateways(ctx)
		Expect(len(t.gateways)).To(BeNumerically(">=", 2), "replicas of the gateway")
		for replica := range t.gateways {
			for way, content := range t.readAll(ctx, replica, artifact.URI) {
				Expect(sum(content)).To(Equal(artifact.SHA256), "%s at replica %d", way, replica)
			}
			t.readRange(ctx, replica, artifact)
		}

		parts := strings.Split(artifact.URI, ".")
		parts[2] = strings.Repeat("1", 32)
		random := strings.Join(parts, ".")
		stranger := t.target("")
		stranger.Token = t.newCaller(ctx, "stranger")
		none := answers(ctx, t.target(""), random)
		Expect(none["GET"]).To(HavePrefix("404 Not Found\n"))
		Expect(answers(ctx, stranger, artifact.URI)).To(Equal(none), "another caller")
		Expect(answers(ctx, t.target("other"), artifact.URI)).To(Equal(none), "another session's header")
	}, SpecTimeout(specTimeout))

	It("frees the session's places: 129 exports one after another succeed, and all can be read", func(ctx context.Context) {
		s := connect(ctx, t.target("many"))
		run(ctx, s, makeFile)
		before := len(store.keys(ctx))
		var last session.Artifact
		for i := range artifactSlots + 1 {
			var err error
			last, err = s.Export(ctx, "file.bin")
			Expect(err).NotTo(HaveOccurred(), "export %d", i+1)
		}
		Expect(store.keys(ctx)).To(HaveLen(before + artifactSlots + 1))
		content, err := s.Read(ctx, last.URI)
		Expect(err).NotTo(HaveOccurred())
		Expect(sum(content)).To(Equal(last.SHA256))
	}, SpecTimeout(specTimeout))

	It("that the gateway has not says so at the export, and the session is used as any", func(ctx context.Context) {
		unknown := newTenant(ctx, inStore("nowhere"))
		s := connect(ctx, unknown.target("s"))
		run(ctx, s, makeFile)
		_, err := s.Export(ctx, "file.bin")
		Expect(err).To(MatchError(session.ErrTool))
		Expect(err).To(MatchError(ContainSubstring(`artifact export failed: the session's template wants exports in the artifact store "nowhere", ` +
			`which this gateway has not: whoever runs it must configure one of that name, or the template name another`)))
		store.unmentioned("the error", err.Error())
		Expect(unknown.sandbox(ctx, "s").Status.ArtifactStore).To(BeEquivalentTo("nowhere"))
	}, SpecTimeout(specTimeout))

	It("says so while its store is down, and goes on when it is back", func(ctx context.Context) {
		s := connect(ctx, t.target("down"))
		run(ctx, s, makeFile)
		artifact, err := s.Export(ctx, "file.bin")
		Expect(err).NotTo(HaveOccurred())

		store.stop(ctx)
		const down = `artifact store "archive" can't be reached; try again`
		_, exportErr := s.Export(ctx, "file.bin")
		_, readErr := s.Read(ctx, artifact.URI)
		_, getErr := session.Get(ctx, t.target("down"), artifact.URI, nil)
		for _, err := range []error{exportErr, readErr, getErr} {
			Expect(err).To(MatchError(ContainSubstring(down)))
			store.unmentioned("the error", err.Error())
		}

		store.start(ctx)
		content, err := s.Read(ctx, artifact.URI)
		Expect(err).NotTo(HaveOccurred())
		Expect(sum(content)).To(Equal(artifact.SHA256))
		again, err := s.Export(ctx, "file.bin")
		Expect(err).NotTo(HaveOccurred())
		Expect(again.SHA256).To(Equal(artifact.SHA256))
		pod := &corev1.Pod{}
		Expect(admin.Get(ctx, t.podOf(ctx, "down"), pod)).To(Succeed())
		unmentioned(ctx, pod, t.sandbox(ctx, "down"))
	}, SpecTimeout(specTimeout))
})

// readAll reads an artifact in each way, as its owner without a session.
func (t *tenant) readAll(ctx context.Context, replica int, uri string) map[string][]byte {
	GinkgoHelper()
	target := t.targetAt(replica, "")
	all := map[string][]byte{}
	for _, era := range []string{session.Legacy, session.Modern} {
		target.Protocol = era
		s := connect(ctx, target)
		content, err := s.Read(ctx, uri)
		Expect(err).NotTo(HaveOccurred())
		all["resources/read of "+era] = content

		var read struct{ Content, Encoding string }
		Expect(s.Call(ctx, "read_artifact", map[string]any{"uri": uri, "length": 100_000}, &read)).To(Succeed())
		Expect(read.Encoding).To(Equal("base64"))
		content, err = base64.StdEncoding.DecodeString(read.Content)
		Expect(err).NotTo(HaveOccurred())
		all["read_artifact of "+era] = content
	}
	all["GET"] = t.get(ctx, replica, uri, "", http.StatusOK)
	return all
}

// readRange puts a file together from parts of it.
func (t *tenant) readRange(ctx context.Context, replica int, artifact session.Artifact) {
	GinkgoHelper()
	var content []byte
	for _, span := range []string{"bytes=0-0", "bytes=1-69999", "bytes=70000-"} {
		content = append(content, t.get(ctx, replica, artifact.URI, span, http.StatusPartialContent)...)
	}
	Expect(sum(content)).To(Equal(artifact.SHA256), "GET in parts at replica %d", replica)
}

func (t *tenant) get(ctx context.Context, replica int, uri, span string, status int) []byte {
	GinkgoHelper()
	header := http.Header{}
	if span != "" {
		header.Set("Range", span)
	}
	answer, err := session.Get(ctx, t.targetAt(replica, ""), uri, header)
	Expect(err).NotTo(HaveOccurred())
	Expect(answer.StatusCode).To(Equal(status))
	content, err := io.ReadAll(answer.Body)
	Expect(errors.Join(err, answer.Body.Close())).To(Succeed())
	return content
}
