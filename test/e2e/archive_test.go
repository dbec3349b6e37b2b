package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berth-dev/berth/test/session"
)

// makeTree makes a directory with what a directory may hold.
const makeTree = `mkdir -p tree/deep/er tree/empty
head -c 3000000 /dev/urandom > tree/random; echo text > tree/deep/er/file; : > tree/deep/nothing
echo run > tree/deep/script; chmod 750 tree/deep/script; ln -s deep/script tree/link; ln -s /etc/passwd tree/link-out
cd tree; find . -type f | sort | xargs sha256sum; cd ..`

var _ = Describe("A directory", func() {
	It("is exported as an archive, with all that is in it", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("s"))
		want := run(ctx, s, makeTree)

		_, err := s.Export(ctx, "tree")
		Expect(err).To(MatchError(session.ErrTool))
		Expect(err).To(MatchError(ContainSubstring("archive")), "it says how")

		archive, err := s.ExportArchive(ctx, "tree")
		Expect(err).NotTo(HaveOccurred())
		Expect(archive.Name).To(Equal("tree.tar.gz"))
		content, err := s.Read(ctx, archive.URI)
		Expect(err).NotTo(HaveOccurred())
		Expect(content).To(HaveLen(int(archive.Size)))
		Expect(sum(content)).To(Equal(archive.SHA256))
		expectNoEscape(content)

		// It comes back by upload, unpacks with tar, and is the same.
		file := upload(ctx, t.target("s"), archive.Name, bytes.NewReader(content))
		Expect(run(ctx, s, "mkdir unpacked && tar -xzf "+file.Path+" -C unpacked && cd unpacked/tree && find . -type f | sort | xargs sha256sum; cd /workspace")).To(Equal(want))
		Expect(run(ctx, s, "cd unpacked/tree; readlink link; ls -d empty; stat -c %a deep/script; cd /workspace")).To(Equal("deep/script\nempty\n750\n"))
	}, SpecTimeout(specTimeout))
})

// expectNoEscape expects an archive to hold nothing of what its links lead to
// outside.
func expectNoEscape(archive []byte) {
	GinkgoHelper()
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	Expect(err).NotTo(HaveOccurred())
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		Expect(err).NotTo(HaveOccurred())
		Expect(header.Name).To(HavePrefix("tree"))
		content, err := io.ReadAll(files)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(content)).NotTo(ContainSubstring("root:"), header.Name)
	}
}
