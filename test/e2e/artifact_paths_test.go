package e2e

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berth-dev/berth/test/session"
)

// quickly is how soon a path is refused, whatever lies there.
const quickly = 2 * time.Second

// layPaths makes in the workspace, and beside it in /tmp, what paths lead to.
const layPaths = `
cd /workspace
mkdir -p in/deep /tmp/out
echo inside > in/file; echo inside > in/deep/file; echo outside, which is longer > /tmp/out/file
echo inside > ..name; echo inside > ...; mkdir ..dir; echo inside > ..dir/file
echo inside > $'new\nline'; echo inside > $'a\u202egpj.exe'
ln -s in/file link; ln -s /tmp/out/file link-out; ln -s /etc/passwd link-etc; ln -s nowhere link-nowhere; ln -s link-loop link-loop
ln -s /proc/self/environ link-environ; ln -s /dev/zero link-device; ln -s /proc/self/fd/0 link-fd
ln -s in dir-in; ln -s /tmp/out dir-out; ln -s ../tmp/out dir-up; ln -s /proc/self/root dir-root; ln -s /proc/self/cwd dir-cwd; ln -s /workspace/in dir-absolute
mkfifo fifo; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
echo secret > unreadable; chmod 0 unreadable; mkdir locked; echo x > locked/file; chmod 0 locked
cd - > /dev/null`

// longest is as long as a path may be, and leads to a file that is there.
var longest = strings.Repeat("./", (4096-len("in/file"))/2) + "/in/file"

// inside are paths of files that hold "inside".
var inside = []string{
	"in/file", "/workspace/in/file", "in/../in//./file", "/workspace/../workspace/in/file", "..name", "./...", "..dir/file",
	"dir-in/file", "new\nline", "a\u202egpj.exe", longest,
}

// outside are paths that lead to no regular file of the workspace.
var outside = []string{
	"../etc/passwd", "../../etc/passwd", "in/../../etc/passwd", "/etc/passwd", "/workspace/../etc/passwd", "/workspacex/file", "/tmp/out/file", "..", "/",
	"link", "link-out", "link-etc", "link-nowhere", "link-loop", "link-environ", "link-device", "link-fd",
	"dir-out/file", "dir-up/file", "dir-root/etc/passwd", "dir-cwd/../etc/passwd",
	"/proc/self/environ", "/proc/1/environ", "/proc/self/root/etc/passwd", "/proc/self/cwd/in/file", "/proc/self/fd/0", "/dev/zero", "/dev/null",
	"fifo", "socket", "in", "/workspace", ".", "dir-in",
	"nothing", "in/nothing", "in/file/deeper", "unreadable", "locked/file", "in/file\x00", "", longest + "x",
}

var _ = Describe("A path", func() {
	var s *session.Session
	BeforeEach(func(ctx context.Context) {
		t := newTenant(ctx, withImage(image("sandbox")))
		s = connect(ctx, t.target("s"))
		run(ctx, s, layPaths)
	})

	It("inside the workspace is exported, whatever its name", func(ctx context.Context) {
		for _, path := range inside {
			artifact, err := s.Export(ctx, path)
			Expect(err).NotTo(HaveOccurred(), "%.80q", path)
			Expect(artifact.Size).To(BeEquivalentTo(len("inside\n")))
			Expect(artifact.Name).NotTo(ContainSubstring("/"))
			Expect(s.Read(ctx, artifact.URI)).To(BeEquivalentTo("inside\n"), "%.80q", path)
		}
	}, SpecTimeout(specTimeout))

	It("that leads to no regular file of the workspace is refused at once, and no absolute path is told", func(ctx context.Context) {
		for _, path := range outside {
			started := time.Now()
			_, err := s.Export(ctx, path)
			Expect(err).To(MatchError(session.ErrTool), "%.80q", path)
			Expect(time.Since(started)).To(BeNumerically("<", quickly), "%.80q", path)
			Expect(err.Error()).NotTo(MatchRegexp(`/(workspace|tmp|etc|proc|dev)`), "%.80q", path)
		}
		_, missing := s.Export(ctx, "nothing")
		for _, path := range []string{"in/nothing", "unreadable", "locked/file"} {
			_, err := s.Export(ctx, path)
			Expect(err).To(MatchError(missing.Error()), "%s looks like one that is missing", path)
		}
	}, SpecTimeout(specTimeout))

	It("of a hard link to a file outside can't be made: the workspace is a file system of its own", func(ctx context.Context) {
		for _, file := range []string{"/etc/passwd", "/tmp/out/file"} {
			result, err := s.Bash(ctx, "ln "+file+" hard")
			Expect(err).NotTo(HaveOccurred())
			Expect(result.ExitCode).NotTo(BeZero(), file)
			_, err = s.Export(ctx, "hard")
			Expect(err).To(MatchError(session.ErrTool))
		}
	}, SpecTimeout(specTimeout))

	It("whose links are swapped all the time never leads outside", func(ctx context.Context) {
		id := startSwapping(ctx, s)
		ends := map[bool]int{}
		live := func() bool { return min(ends[true], ends[false]) < raceEnds && ends[true] < artifactSlots-1 }
		for deadline := time.Now().Add(raceTime); live() && time.Now().Before(deadline); {
			for _, path := range []string{"swapped/file", "swapped-file"} {
				artifact, err := s.Export(ctx, path)
				ends[err == nil]++
				if err != nil {
					Expect(err).To(MatchError(session.ErrTool))
					continue
				}
				Expect(artifact.Size).To(BeEquivalentTo(len("inside\n")))
				Expect(artifact.SHA256).To(Equal(sum([]byte("inside\n"))))
				Expect(s.Read(ctx, artifact.URI)).To(BeEquivalentTo("inside\n"))
			}
		}
		Expect(s.Signal(ctx, id, "KILL")).To(Succeed())
		Expect(ends[true]).NotTo(BeZero(), "some must meet the inside: %v", ends)
		Expect(ends[false]).NotTo(BeZero(), "some must meet the outside: %v", ends)
	}, SpecTimeout(specTimeout))
})

const (
	// raceEnds of either kind are enough.
	raceEnds = 50
	// raceTime bounds the race.
	raceTime = 10 * time.Second
)

// swapLinks has a directory's name, and a file's, lead inside and outside by
// turns, as fast as it can. A name is there all the time.
const swapLinks = `python3 -c '
import os
os.mkdir("own"); open("own/file", "w").write("inside\n")
while True:
    for target in "in", "/tmp/out":
        os.symlink(target, "next"); os.rename("next", "swapped")
    os.link("in/file", "next-file"); os.rename("next-file", "swapped-file")
    os.symlink("/tmp/out/file", "next-file"); os.rename("next-file", "swapped-file")
'`

// startSwapping starts it, and waits until both names are there. It gives the
// process's ID.
func startSwapping(ctx context.Context, s *session.Session) string {
	GinkgoHelper()
	id, err := s.Start(ctx, swapLinks, false)
	Expect(err).NotTo(HaveOccurred())
	run(ctx, s, "until [ -L swapped ] && [ -e swapped-file ]; do sleep 0.01; done")
	return id
}
